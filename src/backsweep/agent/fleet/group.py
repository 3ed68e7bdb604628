"""Compiled tasks as a source of the loop: threads step a group of runs, and a device runs their networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import task_of, task_options
from backsweep.agent.fleet.clock import Clock
from backsweep.agent.fleet.compiled import LockstepLanes, Member
from backsweep.agent.fleet.compiled.backward import BackwardWalks
from backsweep.agent.fleet.compiled.graph_targets import GraphTargets
from backsweep.agent.fleet.compiled.lanes import supported
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.run import Lane
from backsweep.agent.learner.device_observations import ObservationBank
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.executor import Stepper
from backsweep.tasks.resumable import TaskEnvironments

MOST_STEPS = 10_000
"""The largest number of steps between two calls of `hand_back`."""


class Group:
    """Some lanes of a fleet, with their share of the networks: a source of the loop."""

    def __init__(self, fleet: Fleet, first: int, last: int, observations_per_run: Sequence[int]) -> None:
        self.first = first
        self.step = fleet.step
        self.clock, self.schedule = Clock(), fleet.schedule
        self.waits = False
        self._has_errors = False  # whether there are TD errors that the priorities do not have yet
        self._lanes = fleet.lanes[first:last]
        self._shared = fleet.shared
        self.learner: Learner = fleet.learner.part(first, last)
        space = self._lanes[0].envs.observation_space
        rows = [count + 1 for count in observations_per_run]
        bank = ObservationBank(sum(rows), space.shape or (), np.dtype(space.dtype), self.learner.device)
        self._stepper = Stepper(self.learner, bank, self._shared.batch_size)
        starts = [0, *np.cumsum(rows).tolist()]
        members = [
            _member(lane, start, count)
            for lane, start, count in zip(self._lanes, starts[:-1], observations_per_run, strict=True)
        ]
        self._epsilon = self._lanes[0].epsilon
        self._together = LockstepLanes(members, self._epsilon, self._shared.batch_size, self._stepper, MOST_STEPS)
        self._walks = self._make_walks()
        self._graph_targets = self._make_graph_targets()
        self._bank_is_complete = False

    # -- the loop's source ----------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the device has finished all enqueued work."""
        return self._stepper.done

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self.learner.updates

    def wait(self) -> None:
        """Wait for the device."""
        self._stepper.wait()
        self.waits = False
        self.clock.lap("network")

    def act_at_random(self, last: int) -> bool:
        """Take the steps before the warm-up's end in one kernel call."""
        steps = min(last, self.schedule.random_steps) - self.step
        if steps <= 0:
            return False
        self._together.turn(self.step, steps=steps)
        self.step += steps
        self._bank_is_complete = False
        self.clock.lap("lanes")
        return True

    def act(self) -> None:
        """Enqueue the computation of the best actions, unless all actions are random."""
        if not self._bank_is_complete:
            self._fill_bank()
        self.clock.lap("lanes")
        if self._epsilon(self.step) < 1.0:
            self._stepper.act()
            self.waits = True
            self.clock.lap("network")

    def move(self, learns: bool) -> None:
        """Update priorities, step, and draw the first batches, all in one kernel call."""
        self._together.turn(self.step, steps=1, apply=self._has_errors, draw=learns)
        self._has_errors = False
        self._write_new()
        self.step += 1
        self.clock.lap("lanes")

    def prepare_to_learn(self) -> None:
        """Set reward scales, and renew graph values if they are due."""
        for place, lane in enumerate(self._lanes):
            self.learner.scales[place] = lane.estimate_reward_scale()
        due = [place for place, lane in enumerate(self._lanes) if lane.values_due]
        if due and self._graph_targets is not None:
            self._graph_targets.renew(due, self._stepper)
            for place in due:
                self._lanes[place].values_due = False
            self.clock.lap("values")

    def draw(self, first: bool) -> None:
        """Draw batches, unless `move` has; enqueue the values of whole episodes that EBU's targets need."""
        if not first:
            self._together.turn(self.step, apply=True, draw=True)
        self.waits = self._walks is not None and self._walks.begin(self._stepper)
        self.clock.lap("lanes")

    def update(self) -> None:
        """Enqueue the update; its TD errors go to the priorities later."""
        if self._walks is not None:
            self._walks.finish(self._stepper)
            self.clock.lap("lanes")
        if self._graph_targets is not None:
            self._graph_targets.read()
            self.clock.lap("values")
        self._stepper.update()
        self.waits = self._has_errors = True
        self.clock.lap("network")

    def copy_target(self) -> None:
        """Copy the target networks; graph values that depend on them are due."""
        self._stepper.copy_target()
        for lane in self._lanes:
            lane.values_due = lane.method.values is not None
        self.clock.lap("lanes")

    def settle(self) -> None:
        """Update priorities with the last TD errors, and wait for the device."""
        if self._has_errors:
            self._together.turn(self.step, apply=True)
            self._has_errors = False
            self.clock.lap("lanes")
        self._stepper.wait()

    # -- observations on the device -------------------------------------------------------------------------------

    def _write_new(self) -> None:
        places, content = self._together.new_observations()
        if len(places):
            self._stepper.write(places, self._observations(content))

    def _fill_bank(self) -> None:
        for lane in range(len(self._lanes)):
            for places, content in self._together.all_observations(lane):
                self._stepper.write(places, self._observations(content))
        self._bank_is_complete = True

    def _observations(self, content: NDArray[np.uint8]) -> NDArray[np.generic]:
        bank = self._stepper.bank
        return np.ascontiguousarray(content).view(bank.dtype).reshape(len(content), *bank.shape)

    # -- lanes ----------------------------------------------------------------------------------------------------

    def failures(self) -> list[tuple[int, str]]:
        """Return the failed lanes, by their index in the group, and why."""
        return self._together.failures()

    def hand_back(self) -> None:
        """Update the lanes' own objects."""
        self._together.hand_back(self._finished)
        for place, (lane, member) in enumerate(zip(self._lanes, self._together.members, strict=True)):
            lane.observations = member.task.observations.copy()
            lane.returns[0], lane.lengths[0] = member.running_return, member.running_length
            lane.episodes = member.episodes
            if self._walks is not None and lane.backward is not None:
                lane.backward.rows, lane.backward.targets, lane.backward.left_out = self._walks.rest(place)

    def _finished(self, place: int, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        self._lanes[place].finished_returns.extend(returns.tolist())
        self._lanes[place].finished_lengths.extend(lengths.tolist())

    def _make_walks(self) -> BackwardWalks | None:
        rule = self.learner.rule
        if rule.kind != "backward":
            return None
        walking = np.array([lane.backward is not None for lane in self._lanes])
        longest = max(_longest_episode(lane.config) for lane in self._lanes)
        known = self._stepper.known
        assert known is not None
        alone = self.learner.device.type == "cpu"
        walks = BackwardWalks(self._together, walking, rule, longest, known, alone=alone)
        for place, lane in enumerate(self._lanes):
            if lane.backward is not None:
                walks.borrow(place, lane.backward.rows, lane.backward.targets, lane.backward.left_out)
        return walks

    def _make_graph_targets(self) -> GraphTargets | None:
        if not any(lane.method.values is not None for lane in self._lanes):
            return None
        known = self._stepper.known
        assert known is not None
        known[:] = np.nan
        return GraphTargets(self._together, [lane.bounds for lane in self._lanes], known)


def movable(lanes: Sequence[Lane]) -> bool:
    """Return whether the engine can step these lanes; if not, they take plain turns."""
    return all(isinstance(lane.envs, TaskEnvironments) and supported(lane.replay, lane.envs.lanes) for lane in lanes)


def _member(lane: Lane, first_row: int, most_rows: int) -> Member:
    assert isinstance(lane.envs, TaskEnvironments)
    return Member(
        lane.replay,
        lane.envs.lanes,
        lane.explorer.generator,
        first_row,
        most_rows,
        lane.config.bootstrap_at_timeout,
        float(lane.returns[0]),
        int(lane.lengths[0]),
        lane.episodes,
    )


def _longest_episode(config: RunConfig) -> int:
    task = task_of(config)
    assert task is not None
    return min(int(task.options(**task_options(config)).step_limit), config.capacity)
