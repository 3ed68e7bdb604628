"""One environment for each of many runs of one task, stepped by threads; each has the same stream as alone.

reset()                    starts every run's first episode
step(actions, resting)     observations, finals, rewards, terminated, truncated, ended are written in place
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import addresses_of
from backsweep.jit.compilation import threads_in_use
from backsweep.tasks.environments import Outcome
from backsweep.tasks.lane_envs import checked_actions
from backsweep.tasks.lane_seeds import stream_word
from backsweep.tasks.lanes_kernels import Advance
from backsweep.tasks.make import make_lanes
from backsweep.tasks.registry import find_task


class LostLanesError(RuntimeError):
    """Some lanes found no level for a new episode; all others were stepped and can continue."""

    def __init__(self, lanes: NDArray[np.int64]) -> None:
        self.lanes: list[int] = lanes.tolist()
        named = ", ".join(str(lane) for lane in self.lanes)
        super().__init__(f"lane{'s' if len(self.lanes) > 1 else ''} {named} found no level that can be played")


class FleetEnvironments:
    """Environments of many runs of one task; each step overwrites these arrays.

        observations         (n, ...)   the observations to act on: after an end, the next episode's first one
        finals               (n, ...)   the last observation of an episode that has ended; otherwise outdated
        rewards              (n,)       the rewards of the last step
        terminated, truncated, ended    (n,)

    The entries of a resting lane are not changed, except `ended`, which is False.
    """

    def __init__(self, task: str, options: dict[str, Any], lane_seeds: Sequence[int]) -> None:
        """Make one environment per lane seed (see `lane_seeds.py`) of one of the project's own tasks.

        A run alone with root seed s has the lane seed `lane_seeds(s, 1)[0]`.
        """
        if not lane_seeds:
            raise ValueError("lane_seeds must hold one seed or more")
        lanes = make_lanes(find_task(task), len(lane_seeds), options)
        lanes.streams[:] = [stream_word(seed) for seed in lane_seeds]
        self._lanes = lanes
        self.num_envs = lanes.num_lanes
        self.observation_space: gym.Space[Any] = lanes.single_observation_space
        self.num_actions = int(lanes.single_action_space.n)
        self.observations: NDArray[Any] = lanes.observations
        self.finals: NDArray[Any] = np.zeros(lanes.observations.shape, lanes.observations.dtype)
        self.rewards, self.terminated, self.truncated = lanes.rewards, lanes.terminated, lanes.truncated
        self.ended = np.zeros(self.num_envs, dtype=np.bool_)
        actions, resting = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs, np.bool_)
        shown, last = (array.reshape(self.num_envs, -1).view(np.uint8) for array in (self.observations, self.finals))
        self._advance_arrays = Advance(actions, resting, self.ended, shown, last)
        self._advance_at = addresses_of(self._advance_arrays)
        finals: Any = self.finals
        self._outcome = Outcome(lanes.observations, lanes.rewards, lanes.terminated, lanes.truncated, finals)
        self._started = False

    def reset(self) -> NDArray[Any]:
        """Start an episode in every environment."""
        self._started = True
        try:
            self._advance(False, True, None)
        finally:
            self.ended[:] = False
        return self.observations

    def step(
        self, actions: NDArray[np.int64], resting: NDArray[np.bool_] | None = None, *, restart: bool = True
    ) -> Outcome:
        """Step every environment that is not resting; those whose episode ends start the next one.

        Without `restart` they do not: their last observation stays in `observations`, and they must rest afterwards.
        """
        if not self._started:
            raise RuntimeError("step was called before reset; call reset() first")
        self._advance_arrays.actions[:] = checked_actions(actions, self.num_envs, self.num_actions)
        self._advance(True, restart, resting)
        return self._outcome

    def _advance(self, moving: bool, beginning: bool, resting: NDArray[np.bool_] | None) -> None:
        self._advance_arrays.resting[:] = False if resting is None else resting
        if self.num_envs == 1 or (moving and self.num_envs < self._lanes.LANES_WORTH_THREADS):
            lost = self._lanes.advance(1, moving, beginning, self._advance_at)
        else:
            # Always the same number of threads: a change of size recreates the thread pool.
            lost = self._lanes.advance(threads_in_use(), moving, beginning, self._advance_at)
        if lost.size:
            raise LostLanesError(lost)

    def close(self) -> None:
        """Do nothing: there are no resources."""
