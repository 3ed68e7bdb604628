"""The compiled engine: a fleet's lanes moved by threads, their networks by a device, the two at the same time.

The lanes are divided into groups that take turns. While the device works for one group, the threads move another:

    threads   | A: apply, step, draw | B: apply, step, draw | A ...
    device    | B: update, act       | A: update, act       | B ...

The next group is one that the device has finished with: an update takes as long as several acts, so another group can
go several steps ahead in the meantime. A lane's results depend on its own configuration and seed only, so the groups,
their order and the threads do not change them. The lanes remain plain objects (`run.py`); `hand_back` brings them up to
date, after which they can be recorded, evaluated, saved, or continued by plain turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

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
from backsweep.jit.compilation import announce_first_compilation
from backsweep.tasks.resumable import TaskEnvironments

MOST_STEPS = 10_000
"""Steps between two calls of `hand_back` at the most."""


class Engine:
    """Moves a fleet, many steps at a call."""

    def __init__(self, fleet: Fleet, observations_per_run: Sequence[int], groups: int) -> None:
        """Take over a fleet whose lanes are all `movable`.

        Parameters
        ----------
        fleet
            The fleet. If lanes leave it, make another engine.
        observations_per_run
            For how many distinct observations of each lane there is to be room on the device.
        groups
            How many groups take turns; at most one per lane.
        """
        announce_first_compilation("turn_lanes", "what moves fleets", "one to two minutes")
        self.fleet = fleet
        bounds = np.linspace(0, len(fleet.lanes), min(groups, len(fleet.lanes)) + 1).astype(int).tolist()
        self._groups = [Group(fleet, first, last, observations_per_run[first:last]) for first, last in pairwise(bounds)]
        self._since_hand_back = 0

    def advance(self, steps: int, clock: Clock) -> None:
        """Take `steps` steps with every lane, at most MOST_STEPS, and the updates that are due."""
        if self._since_hand_back + steps > MOST_STEPS:
            self.hand_back()
        fleet = self.fleet
        for group in self._groups:
            group.learner.copy_counts(fleet.learner)
        going = {group: group.turns(fleet.step, fleet.step + steps, clock) for group in self._groups}
        while going:
            group = _next(list(going))
            if next(going[group], self) is self:
                del going[group]
        fleet.learner.copy_counts(self._groups[0].learner)
        fleet.step += steps
        self._since_hand_back += steps

    def failures(self) -> list[tuple[int, Exception]]:
        """Return the lanes that cannot go on, by their place in the fleet, and why."""
        return [(group.first + lane, RuntimeError(why)) for group in self._groups for lane, why in group.failures()]

    def hand_back(self) -> None:
        """Bring the lanes' own objects up to date."""
        for group in self._groups:
            group.hand_back()
        self._since_hand_back = 0


class Group:
    """Some lanes of a fleet, with their share of the networks."""

    def __init__(self, fleet: Fleet, first: int, last: int, observations_per_run: Sequence[int]) -> None:
        self.first = first
        self.step = fleet.step
        """How far it is."""
        self._lanes = fleet.lanes[first:last]
        self._shared = fleet.shared
        self._ratio = Fraction(fleet.shared.ratio).limit_denominator(10_000)
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

    # -- turns ----------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the device is done with all that it was asked."""
        return self._stepper.done

    def turns(self, step: int, last: int, clock: Clock) -> Iterator[None]:
        """Go from `step` to `last`; yields whenever the device has something to do that has to be waited for."""
        shared, stepper, together = self._shared, self._stepper, self._together
        pending = False  # whether an update's TD errors have not been taken to the priorities yet
        while step < last:
            self.step = step
            blind = min(last, shared.warmup_steps, self._epsilon.random_steps) - step
            if blind > 0:
                # Nothing is learned and all actions are random: no network is asked.
                together.turn(step, steps=blind)
                clock.lap("lanes")
                step += blind
                self._bank_is_complete = False
                continue
            if not self._bank_is_complete:
                self._fill_bank()
            asked = self._epsilon(step) < 1.0
            clock.lap("lanes")
            if asked:
                stepper.act()
                clock.lap("network")
            if asked or pending:
                yield
                stepper.wait()
                clock.lap("network")
            due = self._updates_due(step + 1)
            together.turn(step, steps=1, apply=pending, draw=due > 0)
            self._write_new()
            pending = False
            step += 1
            for update in range(due):
                if update:
                    clock.lap("lanes")
                    yield
                    stepper.wait()
                    clock.lap("network")
                    together.turn(step, apply=True, draw=True)
                clock.lap("lanes")
                if not update:
                    self._prepare_to_learn(clock)
                if self._walks is not None:
                    if self._walks.begin(stepper):
                        clock.lap("lanes")
                        yield
                        stepper.wait()
                        clock.lap("network")
                    self._walks.finish(stepper)
                    clock.lap("lanes")
                if self._graph_targets is not None:
                    self._graph_targets.read()
                    clock.lap("values")
                stepper.update()
                clock.lap("network")
                pending = True
            if step // shared.target_interval > (step - 1) // shared.target_interval:
                stepper.copy_target()
                for lane in self._lanes:
                    lane.values_due = lane.method.values is not None
            clock.lap("lanes")
        if pending:
            yield
            stepper.wait()
            clock.lap("network")
            together.turn(step, apply=True)
            clock.lap("lanes")
        stepper.wait()

    def _prepare_to_learn(self, clock: Clock) -> None:
        """Settle what has to be known before an update: reward scales, once, and graph values, if they are due."""
        for place, lane in enumerate(self._lanes):
            self.learner.scales[place] = lane.estimate_reward_scale()
        due = [place for place, lane in enumerate(self._lanes) if lane.values_due]
        if due and self._graph_targets is not None:
            self._graph_targets.renew(due, self._stepper)
            for place in due:
                self._lanes[place].values_due = False
            clock.lap("values")

    def _updates_due(self, step: int) -> int:
        learning = step - self._shared.warmup_steps
        if learning <= 0:
            return 0
        return learning * self._ratio.numerator // self._ratio.denominator - self.learner.updates

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
        """Return the lanes that cannot go on, by their place in the group, and why."""
        return self._together.failures()

    def hand_back(self) -> None:
        """Bring the lanes' own objects up to date."""
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


def _next(groups: list[Group]) -> Group:
    """Return whose turn it is: of those that need not wait for the device, or else of all, the one furthest behind."""
    if len(groups) == 1:
        return groups[0]
    return min([group for group in groups if group.ready] or groups, key=lambda group: group.step)


def movable(lanes: Sequence[Lane]) -> bool:
    """Say whether the engine can move these lanes; if not, they take plain turns."""
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
