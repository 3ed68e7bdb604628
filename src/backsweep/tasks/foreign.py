"""Vectors of environments from other packages, with this package's seeds, errors and random actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from backsweep.jit.random_streams import checked_seed
from backsweep.tasks.lane_envs import checked_actions, checked_autoreset
from backsweep.tasks.lane_seeds import lane_seeds, seeds_for_reset


class RandomActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Replaces an action by a uniformly random one with a given probability, with its own generator."""

    def __init__(self, env: gymnasium.Env[Any, Any], chance: float) -> None:
        super().__init__(env)
        self._chance = chance
        self._generator = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; a seed also reseeds the random actions."""
        if seed is not None:
            self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))
        return super().reset(seed=seed, options=options)

    def action(self, action: Any) -> Any:
        """Return the action to execute."""
        assert isinstance(self.action_space, gymnasium.spaces.Discrete)
        if self._generator.random() < self._chance:
            return int(self._generator.integers(self.action_space.n))
        return action


class ForeignVectorEnv(SyncVectorEnv):
    """Gymnasium's SyncVectorEnv with one derived seed per lane and checked actions."""

    def __init__(
        self,
        makers: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        *,
        seed: int,
        autoreset: str | AutoresetMode = "same_step",
        copy: bool = True,
    ) -> None:
        self._first_seed = checked_seed(seed)
        self.lane_seeds: list[int] | None = None
        super().__init__(list(makers), copy=copy, autoreset_mode=checked_autoreset(autoreset))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode in every lane; seeds as in `LaneVectorEnv.reset`."""
        first = self.lane_seeds is None
        seeds = seeds_for_reset(seed, self.num_envs, self._first_seed if first else None)
        known = self.lane_seeds or lane_seeds(0, self.num_envs)
        mask = (options or {}).get("reset_mask", [True] * self.num_envs)
        pairs = zip(known, seeds, mask, strict=True)
        self.lane_seeds = [new if new is not None and chosen else old for old, new, chosen in pairs]
        # The packages' own generators take 32-bit seeds.
        small = [None if entry is None else entry % (1 << 31) for entry in seeds]
        result: tuple[Any, dict[str, Any]] = super().reset(seed=small, options=options)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every lane."""
        if self.lane_seeds is None:
            raise RuntimeError("step was called before reset; call reset() first")
        assert isinstance(self.single_action_space, gymnasium.spaces.Discrete)
        checked = checked_actions(actions, self.num_envs, int(self.single_action_space.n))
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = super().step(checked)
        return result
