"""What one tabular run depends on, as data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Sampler, Topological, Uniform

PER = Prioritized(alpha=0.6, beta=0.4)
SWEEP = Topological(roots=8, predecessors=3, trees="separate")
SHUFFLE = 10_000

SAMPLERS: dict[str, Sampler] = {
    "uer": Uniform(),
    "per": PER,
    "ebu": EpisodicBackward(),
    "discor": Uniform(),
    "ter": SWEEP,
    "ter-mixed": Mixture([(0.5, SWEEP), (0.5, PER)]),
    "ter-shuffled": dataclasses.replace(SWEEP, shuffle=SHUFFLE),
}
METHODS = tuple(SAMPLERS)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run of the tabular study: a backup is one update with a batch of `batch` transitions."""

    method: str
    data_seed: int
    """Which data set; all methods see the same ones, so runs are paired by it."""
    initial: Literal["zero", "uniform"] = "zero"
    """Where values start: 0, or uniform between 0 and 0.1."""
    target_every: int = 0
    """Backups between copies of the target table; 0 bootstraps from the table itself."""
    batch: int = 1
    diffusion: float = 0.5
    """EBU's beta."""
    length: int = 20
    episodes: int = 10
    backups: int = 1_500
    """How many backups the run makes."""

    def to_json(self) -> dict[str, Any]:
        """Return the setting as plain JSON."""
        return dataclasses.asdict(self)


def backups_for(target_every: int) -> int:
    """Return the backups of a run: with a target table, a value needs one copy per step of the chain."""
    return max(1_500, 24 * target_every)
