"""How often rows are drawn for each row that comes in.

Collectors and the learner run at their own speed. A limiter makes the side that is ahead wait, so that each row is
drawn `samples_per_insert` times on average, whatever the machines are. The rule is that of Reverb's
`SampleToInsertRatio`:

    balance = samples_per_insert * rows that came in - rows that were drawn
    centre  = samples_per_insert * min_size

Rows come in while the balance is below centre + error_buffer, and are drawn while it is above centre - error_buffer
and there are `min_size` of them. As the first limit lies above the second, both sides never wait at the same time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimiter:
    """How many rows have to be there before any is drawn, and how often each is drawn.

    Parameters
    ----------
    min_size
        Rows that have to be there before the first batch.
    samples_per_insert
        How often a row is drawn on average: updates times batch size, divided by steps. None sets no limit.
    error_buffer
        How far the balance of rows drawn may be off, in rows drawn. By default a tenth of what `min_size` rows are
        worth, and no less than 10 rows' worth.
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
        """Return the limiter of one of several shards, each of which has its part of the rows."""
        ratio = self.samples_per_insert
        min_size = -(-self.min_size // shards)
        if ratio is None:
            return LiveLimiter(min_size, 0.0, math.inf)
        buffer = 0.1 * ratio * self.min_size if self.error_buffer is None else self.error_buffer
        least = 10.0 * ratio if self.error_buffer is None else 0.0
        return LiveLimiter(min_size, float(ratio), max(buffer / shards, least))


@dataclass
class LiveLimiter:
    """The counts of one shard, and who may go on."""

    min_size: int
    ratio: float
    buffer: float
    inserted: int = 0
    sampled: int = 0

    @property
    def surplus(self) -> float:
        """How far the rows that came in are ahead of those that were drawn, in rows drawn."""
        return self.ratio * (self.inserted - self.min_size) - self.sampled

    def may_insert(self) -> bool:
        """Say whether rows may come in."""
        return self.inserted < self.min_size or self.surplus < self.buffer

    def may_sample(self, size: int) -> bool:
        """Say whether rows may be drawn from `size` of them."""
        return size >= self.min_size and self.surplus > -self.buffer

    def why_no_sample(self, size: int) -> str:
        """Say in words what a sample waits for."""
        if size < self.min_size:
            return f"{size} rows are stored and min_size={self.min_size} are needed"
        return (
            f"{self.sampled} rows were drawn for {self.inserted} that came in, as many as samples_per_insert="
            f"{self.ratio:g} lets be drawn: collectors are behind"
        )
