"""Lanes under Gymnasium's two interfaces: a VectorEnv of many, and an Env of one.

Autoreset modes of the vector:

  same step   a lane that ends is reset within the step: the observation returned is the new episode's first one, and
              the ended episode's last one is in `infos["final_obs"]`
  next step   a lane that ends returns its last observation; the following step ignores that lane's action, resets it
              and returns the new episode's first observation with reward 0
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from backsweep.jit.random_streams import checked_seed
from backsweep.tasks.lane_seeds import fresh_seed, seeds_for_reset, stream_word
from backsweep.tasks.lanes import Lanes

AUTORESET_MODES = {"same_step": AutoresetMode.SAME_STEP, "next_step": AutoresetMode.NEXT_STEP}


class LaneVectorEnv(VectorEnv[Any, Any, Any]):
    """A VectorEnv that steps all lanes with one kernel call."""

    def __init__(
        self, lanes: Lanes, *, seed: int | None = None, autoreset: str | AutoresetMode = "same_step", copy: bool = True
    ) -> None:
        """Wrap `lanes`.

        Parameters
        ----------
        lanes
            The family's lanes.
        seed
            The root seed of a first reset without a seed; None takes one from the operating system.
        autoreset
            "same_step" or "next_step", see the module's docstring.
        copy
            Whether each call returns fresh observation arrays. With False the returned array is the live one, which
            the next call overwrites.
        """
        super().__init__()
        self.lanes = lanes
        self.num_envs = lanes.num_lanes
        self.autoreset_mode = checked_autoreset(autoreset)
        self.metadata = {"render_modes": ["rgb_array"], "autoreset_mode": self.autoreset_mode}
        self.render_mode = "rgb_array"
        self.copy = copy
        self.single_observation_space = lanes.single_observation_space
        self.single_action_space = lanes.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.lane_seeds: list[int] | None = None
        self._first_seed = None if seed is None else checked_seed(seed)
        self._num_actions = int(lanes.single_action_space.n)
        self._resting = np.zeros(self.num_envs, dtype=np.bool_)
        self._all_lanes = np.ones(self.num_envs, dtype=np.bool_)
        self._started = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode in every lane, or in those of `options["reset_mask"]`.

        An int seed gives every lane its own stream; a list gives lane i the stream of its i-th entry, and None there
        keeps the stream it has. `lane_seeds` holds the seeds in use.
        """
        chosen = self._reset_mask(options)
        seeds = seeds_for_reset(seed, self.num_envs, None if self._started else self._root_seed())
        known = self.lane_seeds if self.lane_seeds is not None else [0] * self.num_envs
        for lane, lane_seed in enumerate(seeds):
            if lane_seed is not None and chosen[lane]:
                self.lanes.streams[lane] = stream_word(lane_seed)
                known[lane] = lane_seed
        self.lane_seeds = known
        self.lanes.reset(chosen)
        self._resting[chosen] = False
        self._started = True
        return self._observe(), {}

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Step every lane."""
        if not self._started:
            raise RuntimeError("step was called before reset; call reset() first")
        checked = checked_actions(actions, self.num_envs, self._num_actions)
        lanes = self.lanes
        infos: dict[str, Any] = {}
        lanes.step(checked, self._resting)
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            if self._resting.any():
                lanes.reset(self._resting)
                lanes.rewards[self._resting] = 0.0
                lanes.terminated[self._resting] = False
                lanes.truncated[self._resting] = False
            self._resting = lanes.terminated | lanes.truncated
            return self._observe(), lanes.rewards.copy(), lanes.terminated.copy(), lanes.truncated.copy(), infos
        rewards, terminated, truncated = lanes.rewards.copy(), lanes.terminated.copy(), lanes.truncated.copy()
        ended = terminated | truncated
        if ended.any():
            final_obs = np.full(self.num_envs, None, dtype=object)
            for lane in np.flatnonzero(ended):
                final_obs[lane] = lanes.observations[lane].copy()
            infos = {"final_obs": final_obs, "_final_obs": ended, "final_info": {}, "_final_info": ended.copy()}
            lanes.reset(ended)
        return self._observe(), rewards, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...]:
        """Return one RGB picture per lane."""
        if not self._started:
            raise RuntimeError("render was called before reset; call reset() first")
        return tuple(self.lanes.picture(lane) for lane in range(self.num_envs))

    def _root_seed(self) -> int:
        return fresh_seed() if self._first_seed is None else self._first_seed

    def _observe(self) -> NDArray[Any]:
        return self.lanes.observations.copy() if self.copy else self.lanes.observations

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        """Return which lanes a reset is for."""
        unknown = sorted(set(options or {}) - {"reset_mask"})
        if unknown:
            raise ValueError(f"options may hold 'reset_mask' only, got {', '.join(unknown)}")
        if not options:
            return self._all_lanes
        mask = np.asarray(options["reset_mask"])
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask'] must be a bool array of shape ({self.num_envs},), "
                f"got {mask.dtype} of shape {mask.shape}"
            )
        if not self._started and not mask.all():
            raise ValueError("options['reset_mask'] must choose every lane in the first reset")
        return mask


def checked_autoreset(autoreset: object) -> AutoresetMode:
    """Return the autoreset mode."""
    if isinstance(autoreset, str) and autoreset in AUTORESET_MODES:
        return AUTORESET_MODES[autoreset]
    if autoreset in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        assert isinstance(autoreset, AutoresetMode)
        return autoreset
    raise ValueError(f"autoreset must be one of {', '.join(AUTORESET_MODES)}, got {autoreset!r}")


def checked_actions(actions: Any, num_lanes: int, num_actions: int) -> NDArray[np.int64]:
    """Return `actions` as one int64 per lane, all of them in range."""
    array = np.asarray(actions)
    if array.dtype.kind not in "iu":
        raise TypeError(f"actions must be integers, got {array.dtype}")
    if array.shape != (num_lanes,):
        raise ValueError(f"actions must have shape ({num_lanes},), got {array.shape}")
    if array.min() < 0 or array.max() >= num_actions:
        lane = int(np.flatnonzero((array < 0) | (array >= num_actions))[0])
        raise ValueError(f"actions must be in 0..{num_actions - 1}, got {array[lane]} in lane {lane}")
    return array.astype(np.int64, copy=False)


class LaneEnv(gymnasium.Env[Any, Any]):
    """One lane as a plain environment, with the same levels as in a vector."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(self, lanes: Lanes, *, render_mode: str | None = None) -> None:
        """Wrap `lanes`, which must be one lane."""
        if lanes.num_lanes != 1:
            raise ValueError(f"lanes must hold 1 lane, got {lanes.num_lanes}")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.lanes = lanes
        self.render_mode = render_mode
        self.observation_space = lanes.single_observation_space
        self.action_space = lanes.single_action_space
        self._num_actions = int(lanes.single_action_space.n)
        self._seeded = False
        self._running = False
        self._action = np.zeros(1, dtype=np.int64)
        self._chosen = np.ones(1, dtype=np.bool_)
        self._resting = np.zeros(1, dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed restarts the lane's random stream."""
        if options:
            raise ValueError(f"options must be None or empty, got {options}")
        if seed is None and not self._seeded:
            seed = fresh_seed()
        if seed is not None:
            lane_seed = checked_seed(seed)
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
