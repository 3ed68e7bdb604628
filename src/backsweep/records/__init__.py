"""Records: what a run says about itself, as typed JSON lines in its folder."""

from backsweep.records.reader import RecordFile, read_records
from backsweep.records.rows import EvaluationRecord, Record, ReplayRecord, TimingRecord, TrainingRecord
from backsweep.records.writer import RecordWriter

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
