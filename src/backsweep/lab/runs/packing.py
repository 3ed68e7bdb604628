"""Finished training runs as compact records, from which reports are drawn.

    RESULTS/runs/TASK/METHOD-SETTINGS/seed-N/config.json        as the run wrote it
    RESULTS/runs/TASK/METHOD-SETTINGS/seed-N/finished.json      as the run wrote it
    RESULTS/runs/TASK/METHOD-SETTINGS/seed-N/records.jsonl.gz   every evaluation, and the last of every other kind
                                                                before each; seconds are added up in between

The same run gives the same bytes, wherever it was and however often it is packed.
"""

from __future__ import annotations

import filecmp
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backsweep.lab.claims.evidence import CONFIG, FINISHED, record_file, record_lines
from backsweep.lab.runs.fleets import FLEET_FILE, run_folder
from backsweep.lab.runs.lines import write_lines

PACKED = "records.jsonl.gz"
FILES = (CONFIG, FINISHED, PACKED)


@dataclass
class Packing:
    """What came of it."""

    packed: list[Path] = field(default_factory=list)
    known: int = 0
    """Runs that were there already."""
    refused: list[str] = field(default_factory=list)
    """Runs that were left out, and why."""
    conflicts: int = 0
    """How many of these were left out because another run lies in their place."""
    nbytes: int = 0


class RefusedError(Exception):
    """A run that is not packed, and why."""


def pack(sources: Sequence[Path], results: Path) -> Packing:
    """Copy every finished run below `sources` into a results folder; what cannot be packed is reported."""
    result = Packing()
    for source in sources:
        if not source.is_dir():
            raise ValueError(f"{source} is not a folder of runs")
        if source.resolve().is_relative_to(results.resolve()):
            raise ValueError(f"{source} lies in {results} itself: packing copies runs from elsewhere")
        for path in sorted(source.rglob(CONFIG)):
            # A results folder below the source (runs/ beside results/, say) is not a source.
            if not path.resolve().is_relative_to(results.resolve()):
                _pack_one(path.parent, results, result)
    return result


def compact(records: Iterable[dict[str, Any]], lanes: int) -> Iterator[dict[str, Any]]:
    """Yield every evaluation, and before it the last record of every other kind since the evaluation before.

    Seconds, steps and updates of timing records are added up, so that none is lost. `lanes` is how many runs shared
    those seconds.
    """
    last: dict[str, dict[str, Any]] = {}
    timings: list[dict[str, Any]] = []

    def held() -> Iterator[dict[str, Any]]:
        yield from last.values()
        if timings:
            yield _sum(timings, lanes)
        last.clear()
        timings.clear()

    for record in records:
        if record["kind"] == "evaluation":
            yield from held()
            yield record
        elif record["kind"] == "timing":
            timings.append(record)
        else:
            last[record["kind"]] = record
    yield from held()


def _pack_one(folder: Path, results: Path, result: Packing) -> None:
    try:
        config = _read(folder / CONFIG)
        target = run_folder(results, config)
        with tempfile.TemporaryDirectory(dir=_made(results), prefix=".packing-") as name:
            made = Path(name) / "run"
            _write(folder, made)
            if target.exists():
                _check_same(folder, made, target, result)
                result.known += 1
                return
            result.nbytes += sum(path.stat().st_size for path in made.iterdir())
            os.replace(made, _made(target.parent) / target.name)
        result.packed.append(target)
    except RefusedError as refusal:
        result.refused.append(f"{folder}: {refusal}")


def _write(folder: Path, made: Path) -> None:
    """Write a run's three files."""
    if not (folder / FINISHED).exists():
        raise RefusedError("not finished")
    source = record_file(folder)
    if source is None:
        raise RefusedError("no records")
    fleet = folder.parent / FLEET_FILE
    lanes = len(_read(fleet)["lanes"]) if fleet.exists() else 1
    made.mkdir()
    write_lines(made / PACKED, compact(_records(source), lanes))
    for name in (CONFIG, FINISHED):
        shutil.copyfile(folder / name, made / name)


def _check_same(folder: Path, made: Path, target: Path, result: Packing) -> None:
    """Refuse a run that is not the one in its place; running a configuration again only changes its timings."""
    if all((target / name).exists() and filecmp.cmp(made / name, target / name, shallow=False) for name in FILES):
        return
    result.conflicts += 1
    there = record_file(target)
    ours = [record for record in _records(made / PACKED) if record["kind"] == "evaluation"]
    theirs = [] if there is None else [record for record in _records(there) if record["kind"] == "evaluation"]
    if ours == theirs:
        raise RefusedError(f"{target} holds another run of this configuration, alike but for its timings or form")
    raise RefusedError(f"{target} holds another run of this configuration, with other evaluations")


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for number, (line, whole) in enumerate(record_lines(path), start=1):
        try:
            record = json.loads(line) if whole else None
        except ValueError:
            record = None
        if not isinstance(record, dict) or "kind" not in record:
            raise RefusedError(f"line {number} of {path.name} cannot be read")
        yield record


def _sum(timings: list[dict[str, Any]], lanes: int) -> dict[str, Any]:
    """Return one timing record for several; a fleet's seconds are those of all of its lanes together."""
    names = dict.fromkeys(name for record in timings for name in record["seconds"])
    seconds = {
        name: round(math.fsum(record["seconds"].get(name, 0.0) for record in timings), 6)  # to the microsecond
        for name in names
    }
    whole = {
        "kind": "timing",
        "step": timings[-1]["step"],
        "seconds": seconds,
        "steps": sum(record["steps"] for record in timings),
        "updates": sum(record["updates"] for record in timings),
    }
    shared = timings[-1].get("lanes", lanes)  # packed already
    return whole if shared == 1 else {**whole, "lanes": shared}


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path.name} cannot be read ({error})") from None
    return data


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
