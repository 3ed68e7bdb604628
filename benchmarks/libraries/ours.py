"""backsweep itself."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological, Uniform
from benchmarks.libraries.base import Library, Wanted
from benchmarks.streams import ACTIONS, Transition

_SWEEP = Topological(predecessors=3)  # as in the paper
SAMPLERS: dict[str, Any] = {
    "uniform": Uniform(),
    "prioritized": Prioritized(),
    "topological": _SWEEP,
    "mixture": Mixture([(0.5, _SWEEP), (0.5, Prioritized())]),
    "episodic": EpisodicBackward(),
}


class Ours(Library):
    """A `Replay` with the wanted sampler and otherwise default settings."""

    def __init__(self, wanted: Wanted) -> None:
        self.replay = Replay(
            wanted.space,
            gym.spaces.Discrete(ACTIONS),
            wanted.rows,
            SAMPLERS[wanted.method],
            num_envs=wanted.lanes,
            frame_stack=4 if wanted.variant == "frame_stack" else 1,
        )

    def add(self, prepared: Transition) -> None:
        """Add as a training loop does."""
        self.replay.add(*prepared)

    def sample(self, batch: int) -> Any:
        """Return a `Batch`."""
        return self.replay.sample(batch)

    def sample_and_update(self, batch: int, errors: NDArray[np.float32]) -> Any:
        """Return a `Batch` whose rows have new priorities."""
        result = self.replay.sample(batch)
        self.replay.update_priorities(result.row, errors)
        return result
