"""Tianshou."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries.base import Library, MissingError, Wanted, load
from benchmarks.streams import Transition


class Tianshou(Library):
    """`ReplayBuffer` and its prioritized and vector kinds; with "ignore_obs_next" s' is the next row's s."""

    def __init__(self, wanted: Wanted) -> None:
        if wanted.method not in ("uniform", "prioritized"):
            raise MissingError("has none")
        data = load("tianshou.data", "tianshou")
        options: dict[str, Any] = {"ignore_obs_next": wanted.variant == "ignore_obs_next"}
        if wanted.method == "prioritized":
            options.update(alpha=0.6, beta=0.4)
        name = ("Prioritized" if wanted.method == "prioritized" else "") + ("Vector" if wanted.lanes > 1 else "")
        sizes = (wanted.rows, wanted.lanes) if wanted.lanes > 1 else (wanted.rows,)
        self._buffer = getattr(data, f"{name}ReplayBuffer")(*sizes, **options)
        self._batch = data.Batch

    def add(self, prepared: Transition) -> None:
        """Add as its collector does: wrap the arrays in a Batch."""
        observation, action, reward, next_observation, terminated, truncated = prepared
        self._buffer.add(
            self._batch(
                obs=observation,
                act=action,
                rew=reward,
                obs_next=next_observation,
                terminated=terminated,
                truncated=truncated,
            )
        )

    def sample(self, batch: int) -> Any:
        """Return a Batch and indices."""
        return self._buffer.sample(batch)

    def sample_and_update(self, batch: int, errors: NDArray[np.float32]) -> Any:
        """Return a Batch and indices whose rows have new priorities."""
        result, indices = self._buffer.sample(batch)
        self._buffer.update_weight(indices, errors)
        return result
