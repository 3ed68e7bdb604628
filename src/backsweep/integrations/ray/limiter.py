"""Limits how often rows are sampled per inserted row.

The limiter makes the faster side wait, collectors or learner, so that each row is sampled `samples_per_insert` times on
average. The rule is that of Reverb's `SampleToInsertRatio`:

    balance = samples_per_insert * rows inserted - rows sampled
    centre  = samples_per_insert * min_size

Rows are inserted while the balance is below centre + error_buffer, and sampled while it is above centre - error_buffer
and `min_size` rows are stored. The first limit is above the second, so the two sides never wait for each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimiter:
    """How many rows must be stored before the first sample, and how often each row is sampled.

    Parameters
    ----------
    min_size
        Rows that must be stored before the first batch.
    samples_per_insert
        How often a row is sampled on average: updates times batch size, divided by steps. None: no limit.
    error_buffer
        How far the balance may deviate, in sampled rows. By default a tenth of `samples_per_insert * min_size`, and
        at least `10 * samples_per_insert`.

    Examples
    --------
    >>> RateLimiter(min_size=10_000, samples_per_insert=8)
    RateLimiter(min_size=10000, samples_per_insert=8, error_buffer=None)
    """

    min_size: int = 1
    samples_per_insert: float | None = None
    error_buffer: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.min_size, bool) or not isinstance(self.min_size, int) or self.min_size < 1:
            raise ValueError(f"min_size must be an int of 1 or more, got {self.min_size!r}")
        for name in ("samples_per_insert", "error_buffer"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ValueError(f"{name} must be above 0, got {value!r}")
        if self.error_buffer is not None and self.samples_per_insert is None:
            raise ValueError("error_buffer needs samples_per_insert, got None")

    def share(self, shards: int) -> LiveLimiter:
        """Return the limiter of one of several shards, each of which has a part of the rows."""
        ratio = self.samples_per_insert
        min_size = -(-self.min_size // shards)
        if ratio is None:
            return LiveLimiter(min_size, 0.0, math.inf)
        buffer = 0.1 * ratio * self.min_size if self.error_buffer is None else self.error_buffer
        least = 10.0 * ratio if self.error_buffer is None else 0.0
        return LiveLimiter(min_size, float(ratio), max(buffer / shards, least))


@dataclass
class LiveLimiter:
    """The counts of one shard, and which side may continue."""

    min_size: int
    ratio: float
    buffer: float
    inserted: int = 0
    sampled: int = 0

    @property
    def surplus(self) -> float:
        """How far insertion is ahead of sampling, in sampled rows."""
        return self.ratio * (self.inserted - self.min_size) - self.sampled

    def may_insert(self) -> bool:
        """Return whether rows may be inserted."""
        return self.inserted < self.min_size or self.surplus < self.buffer

    def may_sample(self, size: int) -> bool:
        """Return whether rows may be sampled from `size` stored ones."""
        return size >= self.min_size and self.surplus > -self.buffer

    def why_no_sample(self, size: int) -> str:
        """Return what a sample waits for, in words."""
        if size < self.min_size:
            return f"{size} rows are stored and min_size={self.min_size} are needed"
        return (
            f"{self.sampled} rows were sampled and {self.inserted} inserted, the limit of samples_per_insert="
            f"{self.ratio:g}: collectors are behind"
        )
