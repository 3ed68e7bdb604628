"""Measure everything and write the tables: ``python -m benchmarks.run``.

A whole run writes docs/performance.md, docs/performance-details.md and the README (between their marks), the chart and
benchmarks/results/replay.json. A run of some cells, or a smoke run, only prints, unless it is told where to write.
--again writes all of that from the numbers of the last whole run. With --update the cells that are run take the
place of those in the JSON of the last whole run; every cell says when it was measured, and under which load.
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

from benchmarks import machine
from benchmarks.chart import chart
from benchmarks.libraries import OURS
from benchmarks.plan import Cell, plan, scaled_down
from benchmarks.report import caption, details, headlines, summary, write_between_marks

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
LONGEST_CELL = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Run the cells one after the other and write what they found."""
    options = _options(arguments)
    cells, rows = plan()
    chosen = [cell for cell in cells if _is_chosen(cell, options)]
    if not chosen:
        print(f"no cell matches {options.only!r}; cells are named like {cells[0].name!r}", file=sys.stderr)
        return 2
    if options.again:
        chosen = []
    results: dict[str, Any] = {"machine": {**machine.facts(), "quick": options.quick}, "cells": {}}
    if options.update or options.again:
        results = json.loads(options.json.read_text())
    started = time.perf_counter()
    if chosen:
        _warm_up()
    for number, cell in enumerate(chosen, 1):
        print(
            f"[{number}/{len(chosen)}] {time.perf_counter() - started:4.0f} s  {cell.name}", file=sys.stderr, flush=True
        )
        results["cells"][cell.name] = _run_cell(cell, options)
    if not (options.update or options.again):
        results["machine"]["seconds"] = round(time.perf_counter() - started)
    text = details(results, cells, rows)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.docs is not None:
        write_between_marks(options.docs, text)
    if options.whole:
        page, images = ROOT / "docs" / "performance.md", ROOT / "docs" / "images"
        (images / "performance.svg").write_text(chart(results["cells"]))
        picture = "![times and memory of each library, as multiples of the floor](images/performance.svg)"
        about = caption(results["machine"], list(results["cells"].values()))
        write_between_marks(page, f"{picture}\n\n{about}\n\n{summary(results, rows)}")
        write_between_marks(ROOT / "README.md", headlines(results, rows))
    print(text)
    ours = [result for result in results["cells"].values() if result["library"] == OURS]
    return 1 if any("failed" in result for result in ours) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few cells; its numbers mean nothing")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="cells that match any, e.g. 'sample/*' or 'add'")
    parser.add_argument("--update", action="store_true", help="with --only: renew these cells of the last whole run")
    parser.add_argument("--again", action="store_true", help="measure nothing, write the last whole run's tables")
    parser.add_argument("--core", type=int, help="the core to pin cells to; by default the idlest, for each cell")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("--docs", type=Path, help="the document whose tables are rewritten")
    options = parser.parse_args(arguments)
    if options.update and (options.quick or options.only is None):
        parser.error("--update needs --only, and cannot go with --quick")
    options.whole = not options.quick and (options.only is None or options.update)
    if options.whole:
        options.json = options.json or ROOT / "benchmarks" / "results" / "replay.json"
        options.docs = options.docs or ROOT / "docs" / "performance-details.md"
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
    return {**os.environ, **ONE_THREAD}


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
