"""cpprb."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries.base import Library, MissingError, Wanted, load
from benchmarks.streams import Transition


class Cpprb(Library):
    """`ReplayBuffer` or `PrioritizedReplayBuffer`; with the variant "next_of" frames are shared between s and s'."""

    def __init__(self, wanted: Wanted) -> None:
        if wanted.method not in ("uniform", "prioritized"):
            raise MissingError("has none")
        cpprb = load("cpprb", "cpprb")
        fields: dict[str, Any] = {
            "obs": {"shape": wanted.shape, "dtype": wanted.space.dtype},
            "act": {"dtype": np.int64},
            "rew": {"dtype": np.float32},
            "done": {"dtype": np.bool_},
        }
        options: dict[str, Any] = {}
        self._shares_frames = wanted.variant == "next_of"
        if self._shares_frames:
            options["next_of"] = "obs"
        else:
            fields["next_obs"] = fields["obs"]
        if wanted.method == "prioritized":
            self._buffer = cpprb.PrioritizedReplayBuffer(wanted.rows, fields, alpha=0.6, **options)
        else:
            self._buffer = cpprb.ReplayBuffer(wanted.rows, fields, **options)

    def add(self, prepared: Transition) -> None:
        """Add one transition, or those of all lanes as one batch."""
        self._buffer.add(obs=prepared[0], act=prepared[1], rew=prepared[2], next_obs=prepared[3], done=prepared[4])
        if self._shares_frames and (prepared[4] or prepared[5]):
            self._buffer.on_episode_end()

    def sample(self, batch: int) -> Any:
        """Return a dict of arrays."""
        return self._buffer.sample(batch)

    def sample_and_update(self, batch: int, errors: NDArray[np.float32]) -> Any:
        """Return a dict of arrays whose rows have new priorities."""
        result = self._buffer.sample(batch, 0.4)
        self._buffer.update_priorities(result["indexes"], errors)
        return result
