"""Records: what is written comes back, and what a killed run leaves behind can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backsweep.agent import train
from backsweep.agent.session.records import (
    Record,
    RecordFile,
    RecordWriter,
    ReplayRecord,
    TimingRecord,
    TrainingRecord,
    from_json,
    read_records,
    scalars,
)
from backsweep.record_files import RecordsError, described
from trainer_helpers import paper_config


def _training(step: int, loss: float | None = 0.5) -> TrainingRecord:
    return TrainingRecord(
        step=step,
        updates=step // 4,
        episodes=1,
        epsilon=0.1,
        mean_return=None,
        mean_length=None,
        loss=loss,
        absolute_td_error=None,
        batch_q=1.25,
        batch_target=None,
        effective_sample_size=None,
    )


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    written: list[Record] = [
        _training(4),
        ReplayRecord(step=4, nbytes=100, statistics={"rows": 4, "beta": 0.4}),
        TimingRecord(step=4, seconds={"network": 0.25}, steps=4, updates=1),
    ]
    writer = RecordWriter(tmp_path)
    for record in written:
        writer.write(record)
    writer.close()
    assert read_records(tmp_path) == written
    assert read_records(tmp_path, "replay") == written[1:2]


def test_not_a_number_becomes_null(tmp_path: Path) -> None:
    line = _training(4, loss=float("nan")).to_json()
    assert json.loads(line)["loss"] is None
    assert json.loads(line)["kind"] == "training"


def test_a_torn_last_line_is_passed_over_and_reported(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(_training(4))
    writer.write(_training(8))
    writer.close()
    whole = writer.path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 20):
        writer.path.write_bytes(whole[:cut])
        records = RecordFile(tmp_path)
        assert [record.step for record in records] == [4]
        assert records.torn
    writer.path.write_bytes(whole)
    records = RecordFile(writer.path)
    assert len(list(records)) == 2
    assert not records.torn


def test_damage_in_the_middle_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(_training(4).to_json() + "\n{nonsense\n" + _training(8).to_json() + "\n")
    with pytest.raises(ValueError, match="line 2"):
        read_records(tmp_path)


def test_a_writer_goes_on_from_a_position(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(_training(4))
    position = writer.sync()
    writer.write(_training(8))
    writer.close()
    again = RecordWriter(tmp_path, position)
    again.write(_training(12))
    again.close()
    assert [record.step for record in read_records(tmp_path)] == [4, 12]
    with pytest.raises(ValueError, match="records have been lost"):
        RecordWriter(tmp_path, 10_000)


def test_fields_of_a_newer_release_are_left_out() -> None:
    data = json.loads(_training(4).to_json())
    assert from_json(json.dumps({**data, "new": 1})) == _training(4)
    with pytest.raises(ValueError, match="not a record"):
        from_json('{"kind": "gossip"}')


def test_scalars_have_names_that_say_where_they_come_from() -> None:
    assert scalars(ReplayRecord(step=4, nbytes=100, statistics={"rows": 4})) == {
        "replay/nbytes": 100.0,
        "replay/statistics/rows": 4.0,
    }
    assert "training/mean_return" not in scalars(_training(4))  # None


def test_whoever_writes_on_is_not_finished(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(_training(4))
    position, digest = writer.sync(), writer.digest
    writer.write(_training(8))
    end = json.dumps(described(writer.position, writer.digest))
    writer.close()
    (tmp_path / "finished.json").write_text(end)
    assert len(read_records(tmp_path)) == 2
    RecordWriter(tmp_path, position, digest=digest).close()  # from a checkpoint from before the end
    assert not (tmp_path / "finished.json").exists()
    assert [record.step for record in read_records(tmp_path)] == [4]


def test_the_records_of_a_finished_run_are_checked(tmp_path: Path) -> None:
    config = paper_config("nchain-6", steps=60, warmup_steps=20, evaluation_interval=30, batch_size=8, capacity=60)
    train(config, tmp_path / "run", quiet=True)
    path = tmp_path / "run" / "records.jsonl"
    whole = path.read_bytes()
    kept = read_records(tmp_path / "run")
    for altered in (whole[:-1], whole + b"\n", whole.replace(b'"step":', b'"step": ', 1)):
        path.write_bytes(altered)
        for place in (tmp_path / "run", path):
            with pytest.raises(RecordsError, match=r"records\.jsonl"):
                read_records(place)
    path.write_bytes(whole)
    assert read_records(tmp_path / "run") == kept
