"""Measure everything and write the tables: ``python -m benchmarks.run``.

A whole run writes the record of this kind of processor, and from the records of all kinds docs/performance.md,
docs/performance-details.md, the README (between their marks) and the chart. A run of some cells, or a smoke run, only
prints, unless it is told where to write. With --update the cells that are run take the place of those in the record;
every cell says when it was measured, and under which load.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from backsweep.lab.report.marked_text import rewrite_between
from benchmarks import machine
from benchmarks.chart import chart
from benchmarks.comparison import comparison
from benchmarks.libraries import OURS
from benchmarks.plan import Cell, plan, scaled_down
from benchmarks.records import TITLES, Block, Records, file_of, keep, kind_here, read
from benchmarks.report import captions, details, summary

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
LONGEST_CELL = 300.0
NAME, BEGIN, END = "replay", "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
CHART = ROOT / "docs" / "images" / "performance.svg"


def page(records: Records) -> str:
    """Return the chart and the short table of the page that is meant to be read."""
    picture = "![times and memory of each library, as multiples of the floor](images/performance.svg)"
    return "\n\n".join([picture, *captions(records), summary(records, plan()[1])])


BLOCKS = (
    Block(NAME, ROOT / "docs" / "performance.md", BEGIN, END, page),
    Block(NAME, ROOT / "docs" / "performance-details.md", BEGIN, END, lambda records: details(records, *plan())),
    Block(NAME, ROOT / "README.md", BEGIN, END, comparison),
)


def write_chart() -> None:
    """Draw the chart from the records."""
    CHART.write_text(chart(read(NAME)))


def main(arguments: list[str] | None = None) -> int:
    """Run the cells one after the other and write what they found."""
    options = _options(arguments)
    cells, rows = plan()
    chosen = [cell for cell in cells if _is_chosen(cell, options)]
    if not chosen:
        print(f"no cell matches {options.only!r}; cells are named like {cells[0].name!r}", file=sys.stderr)
        return 2
    results: dict[str, Any] = {"machine": {**machine.facts(), "quick": options.quick}, "cells": {}}
    if options.update and file_of(NAME).exists():
        results = json.loads(file_of(NAME).read_text())
    started = time.perf_counter()
    _warm_up()
    for number, cell in enumerate(chosen, 1):
        print(
            f"[{number}/{len(chosen)}] {time.perf_counter() - started:4.0f} s  {cell.name}", file=sys.stderr, flush=True
        )
        results["cells"][cell.name] = _run_cell(cell, options)
        if options.update:
            keep(NAME, results)  # what was measured stays if the rest is interrupted
    text = details({TITLES[kind_here()]: results}, cells, rows)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.docs is not None:
        rewrite_between(options.docs, BEGIN, END, text)
    if options.whole:
        keep(NAME, results)
        for block in BLOCKS:
            block.write()
        write_chart()
    print(text)
    ours = [results["cells"][cell.name] for cell in chosen if cell.library == OURS]
    return 1 if any("failed" in result for result in ours) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few cells; its numbers mean nothing")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="cells that match any, e.g. 'sample/*' or 'add'")
    parser.add_argument("--update", action="store_true", help="with --only: renew these cells of the record")
    parser.add_argument("--core", type=int, help="the core to pin cells to; by default the idlest, for each cell")
    parser.add_argument("--json", type=Path, help="where to write the numbers too")
    parser.add_argument("--docs", type=Path, help="a document to write the tables of this run into")
    options = parser.parse_args(arguments)
    if options.update and (options.quick or options.only is None):
        parser.error("--update needs --only, and cannot go with --quick")
    options.whole = not options.quick and (options.only is None or options.update)
    return options


def _is_chosen(cell: Cell, options: argparse.Namespace) -> bool:
    if options.only is not None:
        return any(fnmatch.fnmatch(cell.name, pattern) or pattern in cell.name for pattern in options.only)
    return cell.quick or not options.quick


def _warm_up() -> None:
    """Compile the kernels, so that no cell but the cold start has to."""
    program = "from benchmarks.works import startup; startup.warm_up()"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=_environment(), check=True)


def _environment() -> dict[str, str]:
    """Return what cells run with: one thread, and bytecode from earlier runs, as an installation has it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **ONE_THREAD}


def _run_cell(cell: Cell, options: argparse.Namespace) -> dict[str, Any]:
    params = scaled_down(cell.params) if options.quick else cell.params
    core = machine.idlest_core() if options.core is None else options.core
    now = machine.facts()
    about = {"library": cell.library, "params": params, **{name: now[name] for name in ("date", "load", "revision")}}
    with tempfile.TemporaryDirectory() as scratch:
        spec, result = Path(scratch) / "spec.json", Path(scratch) / "result.json"
        spec.write_text(json.dumps({"family": cell.family, "core": core, **about}))
        command = [sys.executable, "-m", "benchmarks.cell", str(spec), str(result)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True, timeout=LONGEST_CELL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {**about, "failed": f"took longer than {LONGEST_CELL:.0f} s"}
        if not result.exists():
            return {**about, "failed": f"the process ended with status {done.returncode}"}
        found: dict[str, Any] = json.loads(result.read_text())
    if "failed" in found:
        print(done.stderr, file=sys.stderr)
    return {**about, **found}


if __name__ == "__main__":
    raise SystemExit(main())
