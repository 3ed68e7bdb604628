"""Where a sweep starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MOST_CANDIDATES = 1024


@dataclass(frozen=True)
class Terminals:
    """Start at terminal vertices."""

    candidates: int = 1
    """The number of terminal vertices that each root is chosen from. 1 draws roots uniformly without replacement. With
    more, that many are drawn uniformly, and the root is a random one of those in the upper half of the range of their
    average accumulated rewards (`PseudoTerminals` defines it). Sweeps then start mostly where episodes succeeded, even
    if most of them fail."""

    def __post_init__(self) -> None:
        candidates = self.candidates
        is_number = isinstance(candidates, (int, np.integer)) and not isinstance(candidates, bool)
        if not is_number or not 1 <= candidates <= MOST_CANDIDATES:
            raise ValueError(f"Terminals: candidates must be an int from 1 to {MOST_CANDIDATES}, got {candidates!r}")


@dataclass(frozen=True)
class PseudoTerminals:
    """Start at vertices drawn from softmax(U / kappa), for tasks whose goals do not end the episode.

    U is a vertex's average accumulated reward: the mean, over its stored visits, of the reward collected from the
    episode's start to the visit.
    """

    kappa: float = 0.01
    """The temperature. Small values are close to an argmax, with ties shared."""

    def __post_init__(self) -> None:
        if not (isinstance(self.kappa, (int, float)) and math.isfinite(self.kappa) and self.kappa > 0):
            raise ValueError(f"PseudoTerminals: kappa must be positive and finite, got {self.kappa!r}")
