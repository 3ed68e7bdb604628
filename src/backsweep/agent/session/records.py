"""The records of a run: typed JSON lines in its folder. Unknown numbers are null, never NaN."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import xxhash

from backsweep.record_files import RecordsError, check_finished_records, record_file, record_lines, update
from backsweep.run_files import FINISHED, RECORDS
from backsweep.snapshot import files


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
    cls = KINDS.get(data.pop("kind", None)) if isinstance(data, dict) else None
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


LONGEST_LINE = 1 << 20
"""More bytes than a record has."""
ADVICE = "Restore the file from a copy, or start the run again"


def checked_digest(folder: str | os.PathLike[str], position: int, expected: str | None) -> xxhash.xxh3_128:
    """Return the digest of the first `position` bytes of a run's records, after checking them."""
    path, digest = Path(folder) / RECORDS, xxhash.xxh3_128()
    size = path.stat().st_size if path.exists() else 0
    if size < position:
        raise RecordsError(
            f"{path}: it has {size} bytes, the checkpoint expects {position}: records have been lost. {ADVICE}"
        )
    if position:
        with files.opened(path, "rb", files.regular) as file:
            update(digest, file, position)
    if expected is not None and digest.hexdigest() != expected:
        raise RecordsError(
            f"{path}: its first {position} bytes are not what the run wrote: the file was altered. {ADVICE}"
        )
    return digest


class RecordWriter:
    """Appends records to a run's file, and passes them to other destinations.

    `position` is the end of the file and `digest` covers all of it. A run that resumes from a checkpoint truncates the
    file at what `kept` was, so that records after the checkpoint are written again, and only once.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        position: int = 0,
        sinks: tuple[Sink, ...] = (),
        digest: str | None = None,
    ) -> None:
        self.path = Path(folder) / RECORDS
        self._sinks = sinks
        self._digest = checked_digest(folder, position, digest)
        # A fleet may continue from a checkpoint from before this run was finished.
        files.remove(self.path.with_name(FINISHED))
        try:
            # Open for as long as the run lasts.
            self._file = files.opened(self.path, "ab", files.regular_and_no_link)
        except OSError as error:
            raise RecordsError(f"{self.path}: {error.strerror}. Remove it, or start the run again") from error
        self._file.truncate(position)
        self._position = position
        self._kept: tuple[int, str] | None = None

    @property
    def position(self) -> int:
        """The size of the file."""
        return self._position

    @property
    def digest(self) -> str:
        """The digest of the whole file."""
        return str(self._digest.hexdigest())

    @property
    def kept(self) -> tuple[int, str]:
        """The position and digest for a checkpoint: without the records after the first call of `leave_out`."""
        return (self.position, self.digest) if self._kept is None else self._kept

    def leave_out(self) -> None:
        """Leave the records that follow out of checkpoints: a run that continues from there does not have them."""
        self._kept = self.kept

    def write(self, record: Record) -> None:
        """Append one record and flush it to the operating system."""
        line = record.to_json().encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(OSError):  # it would try to write the rest again
                self._file.close()
            raise RecordsError(
                f"{self.path} cannot be written: {error.strerror}. When that is solved, resume the run: it continues "
                "from its last checkpoint"
            ) from error
        self._digest.update(line)
        self._position += len(line)
        for sink in self._sinks:
            sink.write(record)

    def sync(self) -> int:
        """Force all records to the disk; return the position."""
        os.fsync(self._file.fileno())
        return self.position

    def close(self) -> None:
        """Close the file and the other destinations."""
        self._file.close()
        for sink in self._sinks:
            sink.close()


class RecordFile:
    """The records of a run, one after another, from a plain file or a packed one.

    An incomplete last line (of a killed run) is skipped and reported. Iterating reads the file as a stream; after a
    complete pass `torn` says whether the last line was incomplete. The records of a finished run are checked first: a
    RecordsError says that they are not what the run wrote.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = Path(folder)
        if path.is_dir():
            path = record_file(path) or path / RECORDS
        self.path = path
        self.torn = False

    def __iter__(self) -> Iterator[Record]:
        self.torn = False
        if self.path == record_file(self.path.parent):
            check_finished_records(self.path.parent)
        for number, (line, whole) in enumerate(record_lines(self.path), start=1):
            if not whole:
                self.torn = True
                return
            try:
                record = from_json(line)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number}: {error}") from error
            yield record


def last_record(folder: str | os.PathLike[str], position: int) -> Record | None:
    """Return the last record in the first `position` bytes of a run's file, None if there is none."""
    with files.opened(Path(folder) / RECORDS, "rb", files.regular) as file:
        file.seek(max(0, position - LONGEST_LINE))
        lines = file.read(min(position, LONGEST_LINE)).splitlines()
    return from_json(lines[-1]) if lines else None


def read_records(folder: str | os.PathLike[str], kind: str | None = None) -> list[Record]:
    """Return a run's records, or those of one kind.

    Parameters
    ----------
    folder
        The run's folder.
    kind
        "evaluation", "training", "replay" or "timing"; None for all.

    Examples
    --------
    >>> for record in read_records("runs/chain", "evaluation"):  # doctest: +SKIP
    ...     print(record.step, record.mean_return)
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return [record for record in RecordFile(folder) if kind is None or record.kind == kind]


class Sink(Protocol):
    """A destination of records."""

    def write(self, record: Record) -> None:
        """Take one record."""

    def close(self) -> None:
        """Finish."""


def scalars(record: Record) -> dict[str, float]:
    """Return the numbers of a record by name: evaluation/mean_return, replay/statistics/rows and so on."""

    def flat(prefix: str, values: dict[str, Any]) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for name, value in values.items():
            if isinstance(value, dict):
                numbers.update(flat(f"{prefix}/{name}", value))
            elif isinstance(value, (int, float)):
                numbers[f"{prefix}/{name}"] = float(value)
        return numbers

    values = dataclasses.asdict(record)
    values.pop("step")
    return flat(record.kind, values)


class TensorBoard:
    """TensorBoard's event files in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError("TensorBoard is not installed: pip install 'backsweep[tensorboard]'") from error
        self._writer: Any = SummaryWriter(os.fspath(folder))

    def write(self, record: Record) -> None:
        """Write every number of the record."""
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record.step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class WeightsAndBiases:
    """A run on Weights & Biases."""

    def __init__(self, project: str, name: str, configuration: dict[str, Any], folder: str | os.PathLike[str]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError("Weights & Biases is not installed: pip install 'backsweep[wandb]'") from error
        self._run: Any = wandb.init(project=project, name=name, config=configuration, dir=os.fspath(folder))

    def write(self, record: Record) -> None:
        """Log every number of the record."""
        self._run.log({**scalars(record), "step": record.step})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()
