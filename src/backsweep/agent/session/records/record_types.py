"""The kinds of record, one JSON line each. Unknown numbers are null, never NaN."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Record:
    """What every record has: its kind, and the environment step it was made at."""

    kind: ClassVar[str]
    step: int
    """Environment steps taken when the record was made."""

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps({"kind": self.kind, **_plain(dataclasses.asdict(self))}, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord(Record):
    """The performance of the greedy policy (with a few random actions), on separate levels."""

    kind: ClassVar[str] = "evaluation"
    episodes: int
    """Episodes played."""
    mean_return: float
    """Mean undiscounted return."""
    median_return: float
    """Median return."""
    lowest_return: float
    """Lowest return."""
    highest_return: float
    """Highest return."""
    normalised_return: float | None
    """The mean return between the task's bounds: 0 is the worst episode, 1 the best. None without bounds."""
    terminated: float
    """Share of episodes that terminated, instead of reaching a time limit."""
    mean_length: float
    """Mean number of steps of an episode."""
    start_value: float
    """Mean over episodes of max Q at the first state: the return that the network predicts."""
    discounted_return: float
    """Mean discounted return of the same episodes."""
    probe_q: float
    """Mean over the fixed probe states of max Q."""
    exact_return: float | None = None
    """Exact expected return of the same policy."""
    exact_normalised: float | None = None
    """`exact_return` between the task's bounds."""
    exact_success: float | None = None
    """Exact probability of success."""
    value_error: float | None = None
    """Mean over all states and actions of |Q - Q*|."""


@dataclass(frozen=True, kw_only=True)
class TrainingRecord(Record):
    """Means since the last training record; None where nothing happened."""

    kind: ClassVar[str] = "training"
    updates: int
    """Updates so far."""
    episodes: int
    """Episodes finished so far."""
    epsilon: float
    """The probability of a random action."""
    mean_return: float | None
    """Mean return of the finished training episodes."""
    mean_length: float | None
    """Mean number of steps of the same episodes."""
    loss: float | None
    """Mean loss."""
    absolute_td_error: float | None
    """Mean |TD error|."""
    batch_q: float | None
    """Mean Q of the method's own batches, which is not comparable between methods (D16)."""
    batch_target: float | None
    """Mean target of the same batches."""
    effective_sample_size: float | None
    """Of the weights in a batch: (sum w)^2 / sum w^2."""


@dataclass(frozen=True, kw_only=True)
class ReplayRecord(Record):
    """Statistics of the replay, its sampler and its graph."""

    kind: ClassVar[str] = "replay"
    nbytes: int
    """Memory in use, in bytes."""
    statistics: dict[str, float]
    """`Replay.stats`."""


@dataclass(frozen=True, kw_only=True)
class TimingRecord(Record):
    """Seconds spent on each activity since the last one. The only kind that differs when a run is repeated."""

    kind: ClassVar[str] = "timing"
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by activity of the training loop."""
    steps: int = 0
    """Environment steps that they were spent on."""
    updates: int = 0
    """Updates in the same time."""


KINDS: dict[str, type[Record]] = {
    cls.kind: cls for cls in (EvaluationRecord, TrainingRecord, ReplayRecord, TimingRecord)
}


def from_json(line: str | bytes) -> Record:
    """Return the record of one line; fields of newer releases are ignored."""
    data = json.loads(line)
    cls = KINDS.get(data.pop("kind", None))
    if cls is None:
        raise ValueError(f"not a record: {line[:100]!r}")
    known = {entry.name for entry in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in data.items() if name in known})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
