"""Packs finished training runs as compact records into a few files, from which reports are made.

    RESULTS/runs/TASK.SETTINGS.runs.jsonl.xz           runs with reporting seeds, a line each
    RESULTS/runs/TASK.SETTINGS.tuning.runs.jsonl.xz    runs with tuning seeds

A run is stored with its exact configuration and end, every evaluation, the total seconds between evaluations, and at
most `MOST_RECORDS` of each other kind. The same runs always give the same bytes. Archives of earlier releases end in
`.gz`; packing into one makes a new one of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backsweep.lab.claims.evidence import configuration_key, settings_of
from backsweep.lab.records import (
    ARCHIVE,
    OLD_ARCHIVE,
    ArchivedRun,
    archives_below,
    check_config,
    read_archive,
    write_lines,
)
from backsweep.lab.seeds import purpose_of
from backsweep.record_files import (
    RecordsError,
    check_finished_records,
    json_object,
    record_file,
    record_lines,
    without_digest,
)
from backsweep.run_files import CONFIG, FINISHED, FLEET
from backsweep.snapshot import files
from backsweep.snapshot.lock import writer_lock

MOST_RECORDS = 40
NOT_IN_NAMES = re.compile(r"[/\\:\x00-\x1f\x7f]")
"""Characters that are replaced in names of archives: a configuration must not choose their folder, and not every
system takes the colon of "module:Id"."""
LONGEST_NAME = 120


@dataclass
class Packing:
    """The result of packing."""

    packed: int = 0
    known: int = 0
    """Runs that were already packed."""
    refused: list[str] = field(default_factory=list)
    """Runs that were skipped, and why."""
    conflicts: int = 0
    """How many of these were skipped because a different run of their configuration is packed."""
    damaged: int = 0
    """How many because their records are not what the run wrote."""
    files: list[Path] = field(default_factory=list)
    """Archives that were written."""

    @property
    def nbytes(self) -> int:
        """Their total size."""
        return sum(path.stat().st_size for path in self.files)


class RefusedError(Exception):
    """A run that is not packed, and why."""


def pack(sources: Sequence[Path], results: Path) -> Packing:
    """Copy every finished run below `sources` into a results folder; what cannot be packed is reported."""
    for source in sources:
        if not source.is_dir():
            raise ValueError(f"{source} is not a folder of runs")
        if source.resolve().is_relative_to(results.resolve()):
            raise ValueError(f"{source} is inside {results}: packing copies runs from elsewhere")
    files.make_folder(results / "runs")
    with writer_lock(results / "runs"):  # who packs at the same time would write over it
        return _pack(sources, results)


def _pack(sources: Sequence[Path], results: Path) -> Packing:
    result = Packing()
    held: dict[Path, dict[str, ArchivedRun]] = {}
    changed: set[Path] = set()
    for source in sources:
        for name, run in _runs_below(source, results, result):
            path = archive_of(results, run.config)
            if path not in held:
                held[path] = _held(path)
            there = held[path]
            try:
                known = _check(run, there, path, result)
            except RefusedError as refusal:
                result.refused.append(f"{name}: {refusal}")
                continue
            result.known += known
            if not known:
                there[_key(run.config)] = run
                changed.add(path)
                result.packed += 1
    for path in sorted(changed):
        ordered = sorted(held[path].values(), key=lambda run: _order(run.config))
        write_lines(path, (run.to_json() for run in ordered))
        _old(path).unlink(missing_ok=True)
        result.files.append(path)
    return result


def archive_of(results: Path, config: dict[str, Any]) -> Path:
    """Return the archive that a run belongs to."""
    place = str(config.get("task") or config.get("env"))[:LONGEST_NAME]
    tuning = ".tuning" if purpose_of(int(config.get("seed", 0))) == "tuning" else ""
    name = NOT_IN_NAMES.sub("-", f"{place}.{settings_of(config)[:LONGEST_NAME]}")
    return results / "runs" / f"{name}{tuning}{ARCHIVE}"


def compact(records: Iterable[dict[str, Any]], runs: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a run to keep, by kind.

    Every evaluation; timing records summed from one evaluation to the next, so that no second, step or update is lost
    (`runs` is the number of runs that shared the seconds); of the others the last before each evaluation, evenly
    thinned.
    """
    kept: dict[str, list[dict[str, Any]]] = {}
    last: dict[str, dict[str, Any]] = {}
    timings: list[dict[str, Any]] = []

    def hold() -> None:
        for kind, record in last.items():
            kept.setdefault(kind, []).append(record)
        if timings:
            kept.setdefault("timing", []).append(_sum(timings, runs))
        last.clear()
        timings.clear()

    for record in records:
        kind, rest = record["kind"], {name: value for name, value in record.items() if name != "kind"}
        if kind == "evaluation":
            hold()
            kept.setdefault(kind, []).append(rest)
        elif kind == "timing":
            timings.append(rest)
        else:
            last[kind] = rest
    hold()
    whole = ("evaluation", "timing")
    return {kind: rows if kind in whole else thinned(rows) for kind, rows in sorted(kept.items())}


def thinned(records: list[dict[str, Any]], most: int = MOST_RECORDS) -> list[dict[str, Any]]:
    """Return at most `most` records, evenly spread, including the last."""
    count = min(most, len(records))
    return [records[-(-(place + 1) * len(records) // count) - 1] for place in range(count)]


def _runs_below(source: Path, results: Path, result: Packing) -> Iterator[tuple[str, ArchivedRun]]:
    """Yield every run that can be packed, with its name, from folders and archives."""

    def outside(path: Path) -> bool:
        # A results folder inside the source is not a source.
        return not path.resolve().is_relative_to(results.resolve())

    for path in filter(outside, sorted(source.rglob(CONFIG))):
        try:
            yield str(path.parent), _read_run(path.parent)
        except RefusedError as refusal:
            result.refused.append(f"{path.parent}: {refusal}")
            result.damaged += isinstance(refusal.__cause__, RecordsError)
    for path in filter(outside, archives_below(source)):
        try:
            held = list(read_archive(path))
        except RecordsError as error:
            result.refused.append(str(error))
            result.damaged += 1
            continue
        for number, run in enumerate(held, start=1):
            if run is None:
                result.refused.append(f"{path}: line {number} cannot be read")
            else:
                yield f"{path}, line {number}", run


def _read_run(folder: Path) -> ArchivedRun:
    config = _read(folder / CONFIG)
    try:
        check_config(config)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if not (folder / FINISHED).exists():
        raise RefusedError("not finished")
    source = record_file(folder)
    if source is None:
        raise RefusedError("no records")
    try:
        check_finished_records(folder)
    except RecordsError as error:
        raise RefusedError(str(error)) from error
    fleet = folder.parent / FLEET
    runs = _size_of_fleet(_read(fleet)) if fleet.exists() else 1
    finished = without_digest(_read(folder / FINISHED))  # the archive does not hold every record
    try:
        kept = compact(_records(source), runs)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RefusedError(f"{source.name} holds what no run writes ({error!r:.200})") from error
    return ArchivedRun.of(config, finished, kept)


def _size_of_fleet(described: dict[str, Any]) -> int:
    """Return how many runs a fleet has; older releases called them lanes."""
    runs = described.get("runs", described.get("lanes"))
    if not isinstance(runs, list):
        raise RefusedError(f"{FLEET} does not list its runs")
    return len(runs)


def _check(run: ArchivedRun, there: dict[str, ArchivedRun], path: Path, result: Packing) -> bool:
    """Return whether a run is already packed; a different run of the same configuration is refused.

    Running a configuration again only changes its timings.
    """
    rival = there.get(_key(run.config))
    if rival is None:
        return False
    if run == rival:
        return True
    result.conflicts += 1
    if run.records("evaluation") == rival.records("evaluation"):
        raise RefusedError(f"{path} holds another run of this configuration, equal except for its timings or form")
    raise RefusedError(f"{path} holds another run of this configuration, with other evaluations")


def _held(path: Path) -> dict[str, ArchivedRun]:
    """Return the runs of an archive by configuration; raise if it cannot be read, so that it is not overwritten."""
    runs: dict[str, ArchivedRun] = {}
    for there in filter(Path.exists, (_old(path), path)):
        for number, run in enumerate(read_archive(there), start=1):
            if run is None:
                raise ValueError(
                    f"{there}, line {number} cannot be read; move the file away or restore it, then pack again"
                )
            runs[_key(run.config)] = run
    return runs


def _old(path: Path) -> Path:
    """Return where an earlier release would have put an archive."""
    return path.with_name(path.name.removesuffix(ARCHIVE) + OLD_ARCHIVE)


def _key(config: dict[str, Any]) -> str:
    return configuration_key(config, frozenset())


def _order(config: dict[str, Any]) -> tuple[str, str, int]:
    return str(config.get("method")), configuration_key(config, frozenset({"seed"})), int(config.get("seed", 0))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for number, (line, whole) in enumerate(record_lines(path), start=1):
        try:
            record = json_object(line) if whole else {}
        except ValueError:
            record = {}
        if not isinstance(record.get("kind"), str):
            raise RefusedError(f"line {number} of {path.name} cannot be read")
        yield record


def _sum(timings: list[dict[str, Any]], runs: int) -> dict[str, Any]:
    """Return the sum of several timing records; a fleet's seconds are those of all its runs together."""
    names = dict.fromkeys(name for record in timings for name in record["seconds"])
    seconds = {
        name: round(math.fsum(record["seconds"].get(name, 0.0) for record in timings), 6)  # to the microsecond
        for name in names
    }
    whole = {
        "step": timings[-1]["step"],
        "seconds": seconds,
        "steps": sum(record["steps"] for record in timings),
        "updates": sum(record["updates"] for record in timings),
    }
    last = timings[-1]
    shared = last.get("runs", last.get("lanes", runs))  # packed already, in older records as `lanes`
    return whole if shared == 1 else {**whole, "runs": shared}


def _read(path: Path) -> dict[str, Any]:
    try:
        return json_object(files.read_whole(path))
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path.name} cannot be read ({error})") from None
