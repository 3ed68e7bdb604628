"""What an encoder is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.types import Observations


class LiveEncoder:
    """Turns batches of observations into keys."""

    words: int
    """How many 64-bit words a key has."""

    def encode(self, observations: Observations) -> NDArray[np.int64]:
        """Return one key per observation, shape (batch, words).

        Equal observations must give equal keys in every batch.
        """
        raise TypeError(f"{type(self).__name__} must define encode")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the randomly drawn arrays, which are saved with the replay."""
        return {}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `arrays` returned."""


@runtime_checkable
class Encoder(Protocol):
    """A frozen configuration that builds a live encoder."""

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveEncoder:
        """Return the encoder for `space`; all its randomness comes from `generator`."""
