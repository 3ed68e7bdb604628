"""Plain environments as a source of the loop: runs step one after another, each with its own objects.

On a GPU, acts and updates are recorded programs that are answered later. Elsewhere they are computed at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.direct_learner import DirectLearner
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.recorded_learner import RecordedLearner
from backsweep.types import Batch


class PlainSource:
    """Some runs of a fleet, with their share of the networks.

    A run that fails takes no further steps here and is listed in `failed`; the others do not notice.
    """

    def __init__(self, fleet: Fleet, learner: Learner, first: int, last: int, *, records: bool) -> None:
        self.first = first
        self.step = fleet.step
        self.clock, self.schedule = Clock(), fleet.schedule
        self.waits = False
        self.learner = learner
        self.failed: dict[int, Exception] = {}
        """Why runs failed, by their place here."""
        self._runs = fleet.runs[first:last]
        self._programs: DirectLearner | RecordedLearner = DirectLearner(learner)
        if records:
            space = self._runs[0].envs.observation_space
            shape, size = space.shape or (), fleet.shared.batch_size
            self._programs = RecordedLearner(learner, size, shape, np.dtype(space.dtype))
        self._drawn: dict[int, tuple[NDArray[np.bool_], NDArray[np.int64]]] = {}
        self._batches: list[Batch] = []
        self._acts = False  # whether this turn's actions were requested
        self._has_errors = False  # whether there are TD errors that the priorities do not have yet

    @property
    def ready(self) -> bool:
        """Whether the device has finished all that was requested."""
        return self._programs.done

    @property
    def updates(self) -> int:
        """How many updates there have been."""
        return self.learner.updates

    def wait(self) -> None:
        """Wait for the device."""
        self._programs.wait()
        self.waits = False
        self.clock.lap("network")

    def act_at_random(self, last: int) -> bool:
        """Return False: random actions are taken turn by turn as well."""
        return False

    def act(self) -> None:
        """Draw every run's random actions, and request the networks' best unless all are random."""
        self._drawn = {}
        for place, run in self._working():
            try:
                self._drawn[place] = run.random_actions(self.step)
            except Exception as error:  # such as a first observation that is not finite
                self.failed[place] = error
        self._acts = not all(random.all() for random, _ in self._drawn.values())
        if self._acts:
            runs = self._runs
            seen = runs[0].observations[None] if len(runs) == 1 else np.stack([run.observations for run in runs])
            self._programs.request_actions(seen)
            self.waits = not self._programs.done
        self.clock.lap("network")

    def move(self, learns: bool) -> None:
        """Step every run's environments; the transitions go to its own replay."""
        self._apply_errors()
        best = self._programs.best_actions() if self._acts else None
        for place, (random, actions) in self._drawn.items():
            chosen = actions if best is None else np.where(random, actions, best[place])
            try:
                self._runs[place].step(chosen, self.clock)
            except Exception as error:
                self.failed[place] = error
        self.step += self.schedule.steps_per_turn

    def prepare_to_learn(self) -> None:
        """Set reward scales, once, and renew graph values if they are due."""
        for place, run in self._working():
            try:
                self.learner.scales[place] = run.estimate_reward_scale()
                run.renew_values(partial(self.learner.values, place, target=True))
            except Exception as error:  # such as values that are not finite
                self.failed[place] = error
        self.clock.lap("values")

    def draw(self, first: bool) -> None:
        """Draw a batch from every replay."""
        self._apply_errors()
        drawn = {place: run.sample() for place, run in self._working()}
        # Networks are updated together: that of a failed run, which nobody will use, learns from another one's batch.
        some = next(iter(drawn.values()), None)
        self._batches = [] if some is None else [drawn.get(place, some) for place in range(len(self._runs))]
        self.clock.lap("replay")

    def update(self) -> None:
        """Request the update; its TD errors go to the priorities later."""
        batches = self._batches
        if not batches:
            return
        self._programs.request_update(batches, self._given_targets(batches), self._tried_values(batches))
        self._has_errors = True
        self.waits = not self._programs.done
        self.clock.lap("network")

    def copy_target(self) -> None:
        """Copy the target networks; graph values that depend on them are due."""
        self._programs.copy_target()
        for run in self._runs:
            run.values_due = run.method.values is not None

    def settle(self) -> None:
        """Update priorities with the last TD errors, and wait for the device."""
        self._programs.wait()
        self._apply_errors()
        self.clock.lap("other")

    def _working(self) -> list[tuple[int, Run]]:
        return [(place, run) for place, run in enumerate(self._runs) if place not in self.failed]

    def _apply_errors(self) -> None:
        """Update priorities with the last TD errors, which must be there."""
        if not self._has_errors:
            return
        self._has_errors = False
        errors = self._programs.td_errors()
        for place, run in self._working():
            if np.isfinite(errors[place]).all():
                run.replay.update_priorities(self._batches[place].row, errors[place])
            else:
                self.failed[place] = FloatingPointError("the TD error is not a number")
        self.clock.lap("replay")

    def _given_targets(self, batches: list[Batch]) -> NDArray[np.float64] | None:
        """Return targets that are known before an update (runs, batch), None if no run has any.

        Rows that EBU skips get weight 0.
        """
        if not self.learner.rule.gives_targets:
            return None
        rows = []
        for place, (run, batch) in enumerate(zip(self._runs, batches, strict=True)):
            if run.backward is None or place in self.failed:
                missing = np.full(len(batch), np.nan)
                rows.append(missing if batch.target is None else batch.target.astype(np.float64))
                continue
            known, left_out = run.backward.of(batch, partial(self.learner.values, place))
            if left_out.any():
                batch.weight = batch.weight * ~left_out
            rows.append(known)
        return np.stack(rows)

    def _tried_values(self, batches: list[Batch]) -> NDArray[np.float64] | None:
        """Return the graph's values of tried actions (runs, batch, actions), None if the rule does not imitate them."""
        if not self.learner.rule.imitation:
            return None
        found = []
        for place, (run, batch) in enumerate(zip(self._runs, batches, strict=True)):
            if place in self.failed:
                found.append(np.full((len(batch), self.learner.network.actions), np.nan, np.float32))
                continue
            planner = run.replay.machinery.planner
            assert planner is not None, "only methods with graph values imitate them"
            found.append(planner.tried_values(batch.row))
        return np.stack(found).astype(np.float64)
