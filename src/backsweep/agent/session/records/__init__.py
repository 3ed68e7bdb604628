"""The records of a run, as typed JSON lines in its folder."""

from backsweep.agent.session.records.reader import RecordFile, read_records
from backsweep.agent.session.records.record_types import (
    EvaluationRecord,
    Record,
    ReplayRecord,
    TimingRecord,
    TrainingRecord,
)
from backsweep.agent.session.records.writer import RecordWriter

__all__ = [
    "EvaluationRecord",
    "Record",
    "RecordFile",
    "RecordWriter",
    "ReplayRecord",
    "TimingRecord",
    "TrainingRecord",
    "read_records",
]
