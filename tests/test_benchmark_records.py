"""Records of benchmarks: one for each kind of processor, and pages that show them all."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def on(monkeypatch: pytest.MonkeyPatch, vendor: str, machine: str = "x86_64") -> None:
    """Pretend to run on a processor of another vendor."""
    monkeypatch.setattr("benchmarks.records.cpu_field", {"vendor_id": vendor}.get)
    monkeypatch.setattr("platform.machine", lambda: machine)


@pytest.mark.parametrize(
    ("vendor", "machine", "kind"),
    [
        ("GenuineIntel", "x86_64", "intel"),
        ("AuthenticAMD", "x86_64", "amd"),
        ("", "arm64", "arm"),
        ("", "aarch64", "arm"),
        ("HygonGenuine", "x86_64", "other"),
    ],
)
def test_the_kind_of_a_processor(monkeypatch: pytest.MonkeyPatch, vendor: str, machine: str, kind: str) -> None:
    from benchmarks import records

    on(monkeypatch, vendor, machine)
    assert records.kind_here() == kind


def test_a_measurement_replaces_the_record_of_its_own_processor_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import records

    for vendor, number in (("AuthenticAMD", 1), ("GenuineIntel", 2), ("AuthenticAMD", 3)):
        on(monkeypatch, vendor)
        records.keep("speed", {"machine": {"cpu": vendor}, "number": number}, tmp_path)
    found = records.read("speed", tmp_path)
    assert list(found) == ["Intel", "AMD"]
    assert [record["number"] for record in found.values()] == [2, 3]
    assert records.read("memory", tmp_path) == {}


def test_a_record_without_a_machine_is_refused(tmp_path: Path) -> None:
    from benchmarks import records

    with pytest.raises(ValueError, match="'speed' must say on which machine"):
        records.keep("speed", {"number": 1}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_page_has_what_the_records_say() -> None:
    from benchmarks import records
    from benchmarks.chart import chart
    from benchmarks.run import CHART

    for block in records.blocks():
        shown = block.page.read_text(encoding="utf-8").split(block.begin)[1].split(block.end)[0]
        assert shown.strip() == block.text(records.read(block.name)).strip(), block.page.name
    assert CHART.read_text() == chart(records.read("replay"))


def test_every_record_of_a_processor_is_read_by_a_benchmark() -> None:
    from benchmarks import records

    names = {block.name for block in records.blocks()} | {"reporting", "integrations"}
    for kind in records.TITLES:
        for file in (records.RESULTS / kind).glob("*"):
            assert file.stem in names, file
            assert {"date", "cpu", "python"} <= json.loads(file.read_text())["machine"].keys(), file


def test_the_page_to_read_has_one_chart_and_a_short_table() -> None:
    from benchmarks import records
    from benchmarks.run import BLOCKS

    found = records.read("replay")
    text = BLOCKS[0].text(found)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert text.count("![") == 1
    assert 2 < len(rows) <= 12 + 2
    for kind, record in found.items():
        assert f"ours, {kind}" in rows[0]
        assert record["machine"]["cpu"] in text


def changed(value: Any, factor: float) -> Any:
    """Return a record with every number multiplied."""
    if isinstance(value, dict):
        return {name: changed(part, factor) for name, part in value.items()}
    if isinstance(value, list):
        return [changed(part, factor) for part in value]
    return value * factor if isinstance(value, float) else value


@pytest.mark.parametrize("only", [True, False])
def test_pages_can_be_written_with_any_number_of_processors(only: bool) -> None:
    from benchmarks import records
    from benchmarks.chart import chart

    for block in records.blocks():
        first = next(iter(records.read(block.name).values()))
        other = changed(copy.deepcopy(first), 3.0)
        other["machine"]["cpu"] = "Another processor"
        made = {"Intel": first} if only else {"Intel": first, "AMD": first, "ARM": other}
        text = block.text(made)
        assert first["machine"]["cpu"] in text
        assert ("Another processor" in text) is not only
        assert "ARM" in text or only
    first = next(iter(records.read("replay").values()))
    assert chart({"Intel": first}).count("<rect") < chart({"Intel": first, "AMD": first}).count("<rect")


def test_what_one_processor_lacks_is_shown_as_missing() -> None:
    from benchmarks import records
    from benchmarks.plan import plan
    from benchmarks.report import summary

    whole = next(iter(records.read("replay").values()))
    part = copy.deepcopy(whole)
    for cell in ("sample/obs40/topological/fresh", "add/1/stable-baselines3"):
        del part["cells"][cell]
    text = summary({"Intel": whole, "AMD": part}, plan()[1])
    sampling = next(line for line in text.splitlines() if "`Topological` sample" in line and "twice" in line)
    assert sampling.split(" | ")[3] == "-"
    adding = next(line for line in text.splitlines() if "`add`, one at a time, `Topological`" in line)
    assert "on Intel" in adding.split(" | ")[1]
    assert "on AMD" not in adding.split(" | ")[1]
