"""The numbers of the benchmarks: one record for each benchmark and each kind of processor.

    benchmarks/results/intel/replay.json
    benchmarks/results/amd/replay.json

A measurement replaces the record of the kind of processor that it ran on and leaves the others alone. Pages are
written from all records of a benchmark, with a column or a row for each kind. `python -m benchmarks.records` writes all
pages from the records again and measures nothing.
"""

from __future__ import annotations

import importlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backsweep.lab.report.marked_text import rewrite_between
from benchmarks.machine import cpu_field

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TITLES = {"intel": "Intel", "amd": "AMD", "arm": "ARM", "other": "other"}
"""Kinds of processors in the order of columns: the name of a folder, and of a column."""
VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
WITH_PAGES = ("run", "trainer", "updates", "tasks", "planning", "exploring", "integrations", "view", "first_use")
"""The modules that write a part of a page; each has `BLOCKS`."""

Records = dict[str, dict[str, Any]]
"""The records of one benchmark by the title of the processor's kind."""


def kind_here() -> str:
    """Return the kind of this machine's processor."""
    arm = platform.machine().lower() in ("arm64", "aarch64")
    return VENDORS.get(cpu_field("vendor_id"), "arm" if arm else "other")


def file_of(name: str, results: Path = RESULTS) -> Path:
    """Return the file that holds a benchmark's record for this kind of processor."""
    return results / kind_here() / f"{name}.json"


def keep(name: str, record: dict[str, Any], results: Path = RESULTS) -> None:
    """Write a benchmark's record for this kind of processor; it needs facts about the machine."""
    if "machine" not in record:
        raise ValueError(f"the record of {name!r} must say on which machine it was measured: it has no 'machine'")
    file = file_of(name, results)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read(name: str, results: Path = RESULTS) -> Records:
    """Return a benchmark's records by kind of processor, in the order of columns."""
    files = {title: results / kind / f"{name}.json" for kind, title in TITLES.items()}
    return {title: json.loads(file.read_text(encoding="utf-8")) for title, file in files.items() if file.exists()}


@dataclass(frozen=True)
class Block:
    """A part of a page, between two marked lines, that is made from a benchmark's records."""

    name: str
    page: Path
    begin: str
    end: str
    text: Callable[[Records], str]

    def write(self) -> None:
        """Write the part of the page again."""
        rewrite_between(self.page, self.begin, self.end, self.text(read(self.name)))


def blocks() -> list[Block]:
    """Return the parts of all pages."""
    return [block for name in WITH_PAGES for block in importlib.import_module(f"benchmarks.{name}").BLOCKS]


def main() -> int:
    """Write all pages again."""
    from benchmarks.run import write_chart

    for block in blocks():
        block.write()
    write_chart()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
