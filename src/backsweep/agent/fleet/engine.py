"""The compiled engine: threads step a fleet's runs while a device runs their networks.

The runs are divided into groups that alternate. While the device works for one group, the threads step another:

    threads   | A: apply, step, draw | B: apply, step, draw | A ...
    device    | B: update, act       | A: update, act       | B ...

The next group is one that the device has finished: an update takes as long as several acts, so another group can get
several steps ahead. A run's results depend only on its own configuration and seed, so groups, their order and threads
do not change them. The runs remain plain objects (`run.py`); `hand_back` updates them, after which they can be
recorded, evaluated, saved, or continued by plain turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import task_of, task_options
from backsweep.agent.fleet.alternation import advance_together, ranges
from backsweep.agent.fleet.compiled import CompiledRuns, Member
from backsweep.agent.fleet.compiled.given_targets import BackwardWalks, GraphTargets
from backsweep.agent.fleet.compiled.runs import supported
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.backward_targets import rest_of, set_rest
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.executor import Executor
from backsweep.jit.compilation import announce_first_compilation
from backsweep.tasks.environments import TaskEnvironments

MOST_STEPS = 10_000
"""The largest number of steps between two calls of `hand_back`."""


class Group:
    """Some runs of a fleet, with their share of the networks: a source of the loop."""

    def __init__(self, fleet: Fleet, first: int, last: int, observations_per_run: Sequence[int]) -> None:
        self.first = first
        self.step = fleet.step
        self.clock, self.schedule = Clock(), fleet.schedule
        self.waits = False
        self._has_errors = False  # whether there are TD errors that the priorities do not have yet
        self._runs = fleet.runs[first:last]
        self._shared = fleet.shared
        self.learner: Learner = fleet.learner.of_runs(first, last)
        space = self._runs[0].envs.observation_space
        rows = [count + 1 for count in observations_per_run]
        observations = DeviceObservations(sum(rows), space.shape or (), np.dtype(space.dtype), self.learner.device)
        self._executor = Executor(self.learner, observations, self._shared.batch_size)
        starts = [0, *np.cumsum(rows).tolist()]
        members = [
            _member(run, start, count)
            for run, start, count in zip(self._runs, starts[:-1], observations_per_run, strict=True)
        ]
        self._epsilon = self._runs[0].schedule
        self._together = CompiledRuns(members, self._epsilon, self._shared.batch_size, self._executor, MOST_STEPS)
        self._walks = self._make_walks()
        self._graph_targets = self._make_graph_targets()
        self._bank_is_complete = False

    # -- the loop's source ----------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the device has finished all enqueued work."""
        return self._executor.done

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self.learner.updates

    def wait(self) -> None:
        """Wait for the device."""
        self._executor.wait()
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
        self.clock.lap("stepping")
        return True

    def act(self) -> None:
        """Enqueue the computation of the best actions, unless all actions are random."""
        if not self._bank_is_complete:
            self._fill_observations()
        self.clock.lap("stepping")
        if self._epsilon(self.step) < 1.0:
            self._executor.act()
            self.waits = True
            self.clock.lap("network")

    def move(self, learns: bool) -> None:
        """Update priorities, step, and draw the first batches, all in one kernel call."""
        self._together.turn(self.step, steps=1, apply=self._has_errors, draw=learns)
        self._has_errors = False
        self._write_new()
        self.step += 1
        self.clock.lap("stepping")

    def prepare_to_learn(self) -> None:
        """Set reward scales, and renew graph values if they are due."""
        for place, run in enumerate(self._runs):
            self.learner.scales[place] = run.estimate_reward_scale()
        due = [place for place, run in enumerate(self._runs) if run.values_due]
        if due and self._graph_targets is not None:
            self._graph_targets.renew(due, self._executor)
            for place in due:
                self._runs[place].values_due = False
            self.clock.lap("values")

    def draw(self, first: bool) -> None:
        """Draw batches, unless `move` has; enqueue the values of whole episodes that EBU's targets need."""
        if not first:
            self._together.turn(self.step, apply=True, draw=True)
        self.waits = self._walks is not None and self._walks.begin(self._executor)
        self.clock.lap("stepping")

    def update(self) -> None:
        """Enqueue the update; its TD errors go to the priorities later."""
        if self._walks is not None:
            self._walks.finish(self._executor)
            self.clock.lap("stepping")
        if self._graph_targets is not None:
            self._graph_targets.read()
            self.clock.lap("values")
        self._executor.update()
        self.waits = self._has_errors = True
        self.clock.lap("network")

    def copy_target(self) -> None:
        """Copy the target networks; graph values that depend on them are due."""
        self._executor.copy_target()
        for run in self._runs:
            run.values_due = run.method.values is not None
        self.clock.lap("stepping")

    def settle(self) -> None:
        """Update priorities with the last TD errors, and wait for the device."""
        if self._has_errors:
            self._together.turn(self.step, apply=True)
            self._has_errors = False
            self.clock.lap("stepping")
        self._executor.wait()

    # -- observations on the device -------------------------------------------------------------------------------

    def _write_new(self) -> None:
        places, content = self._together.new_observations()
        if len(places):
            self._executor.write(places, self._observations(content))

    def _fill_observations(self) -> None:
        for run in range(len(self._runs)):
            for places, content in self._together.all_observations(run):
                self._executor.write(places, self._observations(content))
        self._bank_is_complete = True

    def _observations(self, content: NDArray[np.uint8]) -> NDArray[np.generic]:
        kept = self._executor.observations
        return np.ascontiguousarray(content).view(kept.dtype).reshape(len(content), *kept.shape)

    # -- runs -----------------------------------------------------------------------------------------------------

    def failures(self) -> list[tuple[int, str]]:
        """Return the failed runs, by their index in the group, and why."""
        return self._together.failures()

    def hand_back(self) -> None:
        """Update the runs' own objects."""
        self._together.hand_back(self._finished)
        for place, (run, member) in enumerate(zip(self._runs, self._together.members, strict=True)):
            run.observations = member.task.observations.copy()
            run.returns[0], run.lengths[0] = member.running_return, member.running_length
            run.episodes = member.episodes
            if self._walks is not None and run.backward is not None:
                run.backward.set_rest(*rest_of(self._walks.walks[place]))

    def _finished(self, place: int, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        self._runs[place].finished_returns.extend(returns.tolist())
        self._runs[place].finished_lengths.extend(lengths.tolist())

    def _make_walks(self) -> BackwardWalks | None:
        rule = self.learner.rule
        if rule.kind != "backward":
            return None
        walking = np.array([run.backward is not None for run in self._runs])
        longest = max(_longest_episode(run.config) for run in self._runs)
        known = self._executor.known
        assert known is not None
        alone = self.learner.device.type == "cpu"
        walks = BackwardWalks(self._together, walking, rule, longest, known, alone=alone)
        for place, run in enumerate(self._runs):
            if run.backward is not None:
                set_rest(walks.walks[place], *run.backward.rest())
        return walks

    def _make_graph_targets(self) -> GraphTargets | None:
        if not any(run.method.values is not None for run in self._runs):
            return None
        known = self._executor.known
        assert known is not None
        known[:] = np.nan
        return GraphTargets(self._together, [run.bounds for run in self._runs], known, self._executor.tried)


def movable(runs: Sequence[Run]) -> bool:
    """Return whether the engine can step these runs; if not, they take plain turns."""
    return all(
        isinstance(run.envs, TaskEnvironments)
        and supported(run.replay, run.envs.lanes)
        and not run.config.explore_until_reward
        for run in runs
    )


def _member(run: Run, first_row: int, most_rows: int) -> Member:
    assert isinstance(run.envs, TaskEnvironments)
    return Member(
        run.replay,
        run.envs.lanes,
        run.explorer.generator,
        first_row,
        most_rows,
        run.config.bootstrap_at_timeout,
        float(run.returns[0]),
        int(run.lengths[0]),
        run.episodes,
        run.config.explore == "graph",
    )


def _longest_episode(config: RunConfig) -> int:
    task = task_of(config)
    assert task is not None
    return min(int(task.options(**task_options(config)).step_limit), config.capacity)


class Engine:
    """Steps a fleet, many steps per call."""

    most_steps = MOST_STEPS

    def __init__(self, fleet: Fleet, observations_per_run: Sequence[int], groups: int) -> None:
        """Prepare a fleet whose runs are all `movable`.

        Parameters
        ----------
        fleet
            The fleet. If runs leave it, make another engine.
        observations_per_run
            The number of distinct observations of each run that the device has memory for.
        groups
            The number of groups; at most one per run.
        """
        announce_first_compilation("turn_runs", "the kernels that step fleets", "one to two minutes")
        self.fleet = fleet
        self._groups = [
            Group(fleet, first, last, observations_per_run[first:last])
            for first, last in ranges(len(fleet.runs), groups)
        ]
        self._since_hand_back = 0

    def advance(self, steps: int, clock: Clock) -> None:
        """Take `steps` steps with every run, at most MOST_STEPS, and the updates that are due."""
        if self._since_hand_back + steps > MOST_STEPS:
            self.hand_back()
        fleet = self.fleet
        advance_together(fleet, self._groups, fleet.step + steps, clock)
        self._since_hand_back += steps

    def failures(self) -> list[tuple[int, Exception]]:
        """Return the failed runs, by their index in the fleet, and why."""
        return [(group.first + run, RuntimeError(why)) for group in self._groups for run, why in group.failures()]

    def hand_back(self) -> None:
        """Update the runs' own objects."""
        for group in self._groups:
            group.hand_back()
        self._since_hand_back = 0
