"""A single lane as a Gymnasium Env."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import checked_seed
from backsweep.tasks.lane_seeds import fresh_seed, stream_word
from backsweep.tasks.lanes import Lanes


class LaneEnv(gymnasium.Env[Any, Any]):
    """One lane as a plain environment, with the same levels as in a vector."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(self, lanes: Lanes, *, seed: int | None = None, render_mode: str | None = None) -> None:
        """Wrap `lanes`, which must be one lane; `seed` is used by the first reset without a seed."""
        if lanes.num_lanes != 1:
            raise ValueError(f"lanes must hold 1 lane, got {lanes.num_lanes}")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.lanes = lanes
        self.render_mode = render_mode
        self.observation_space = lanes.single_observation_space
        self.action_space = lanes.single_action_space
        self._num_actions = int(lanes.single_action_space.n)
        self._first_seed = None if seed is None else checked_seed(seed)
        self._seeded = False
        self._running = False
        self._action = np.zeros(1, dtype=np.int64)
        self._chosen = np.ones(1, dtype=np.bool_)
        self._resting = np.zeros(1, dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed restarts the lane's random stream."""
        if options:
            raise ValueError(f"options must be None or empty, got {options}")
        if seed is not None:
            lane_seed = checked_seed(seed)
        elif not self._seeded:
            lane_seed = fresh_seed() if self._first_seed is None else self._first_seed
        else:
            lane_seed = None
        if lane_seed is not None:
            super().reset(seed=lane_seed)
            self.lanes.streams[0] = stream_word(lane_seed)
            self._seeded = True
        self.lanes.reset(self._chosen)
        self._running = True
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        if not self._running:
            raise RuntimeError("step was called before reset, or after the episode's end; call reset() first")
        try:
            chosen = operator.index(action)
        except TypeError:
            raise TypeError(f"action must be an integer, got {type(action).__name__}") from None
        if not 0 <= chosen < self._num_actions:
            raise ValueError(f"action must be in 0..{self._num_actions - 1}, got {chosen}")
        lanes = self.lanes
        self._action[0] = chosen
        lanes.step(self._action, self._resting)
        terminated, truncated = bool(lanes.terminated[0]), bool(lanes.truncated[0])
        self._running = not (terminated or truncated)
        return self._observe(), float(lanes.rewards[0]), terminated, truncated, {}

    def render(self) -> NDArray[np.uint8] | None:
        """Return an RGB picture of the lane when the environment was made with render_mode="rgb_array"."""
        return None if self.render_mode is None else self.lanes.picture(0)

    def _observe(self) -> Any:
        observation = self.lanes.observations[0]
        return observation.copy() if isinstance(observation, np.ndarray) else observation
