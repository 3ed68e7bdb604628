"""Where a sweep starts."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Terminals:
    """Start at terminal vertices, drawn uniformly without replacement."""


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
