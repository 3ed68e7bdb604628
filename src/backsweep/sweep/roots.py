"""Where a sweep starts."""

from __future__ import annotations

from dataclasses import dataclass

from backsweep.checks import is_int, is_number, need_fields

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
        whole = f"an int from 1 to {MOST_CANDIDATES}"
        need_fields(self, lambda v: is_int(v) and 1 <= v <= MOST_CANDIDATES, whole, "candidates")


@dataclass(frozen=True)
class PseudoTerminals:
    """Start at vertices drawn from softmax(U / kappa), for tasks whose goals do not end the episode.

    U is a vertex's average accumulated reward: the mean, over its stored visits, of the reward collected from the
    episode's start to the visit.
    """

    kappa: float = 0.01
    """The temperature. Small values are close to an argmax, with ties shared."""

    def __post_init__(self) -> None:
        need_fields(self, lambda v: is_number(v) and v > 0, "positive and finite", "kappa")
