"""How long a report over many training runs takes, pictures and page included, and how long its page takes to open.

    python -m benchmarks.reporting --runs 1000
    python -m benchmarks.reporting --browser        also opens the page in Chromium (needs the browser extra)

The runs are those of the paper's questions in their order, with made-up evaluations: straight lines of thirty points,
and ten records of other kinds before every one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.cli import main as backsweep
from backsweep.lab.claims.question import Grid
from backsweep.lab.claims.questions import QUESTIONS
from backsweep.lab.runs.jobs import run_configuration
from benchmarks.machine import facts
from benchmarks.opening import seconds_to_open
from benchmarks.records import file_of

EVALUATIONS = 30


def configurations(count: int) -> Iterator[dict[str, Any]]:
    """Yield the first `count` distinct runs of the questions."""
    seen: set[str] = set()
    for question in (question for question in QUESTIONS if question.kind == "paper"):
        plan = question.plan("paper")
        for run in plan.runs() if isinstance(plan, Grid) else ():
            try:
                config = run_configuration(run)
            except ImportError:  # a task that needs an extra
                continue
            key = json.dumps(config, sort_keys=True)
            if key not in seen and len(seen) < count:
                seen.add(key)
                yield config


def write_run(folder: Path, config: dict[str, Any], final: float) -> None:
    """Write a finished run whose score rises in a straight line to `final`."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "finished.json").write_text("{}")
    lines = []
    for place in range(1, EVALUATIONS + 1):
        score, step = final * place / EVALUATIONS, place * config["steps"] // EVALUATIONS
        record = {"kind": "evaluation", "step": step, "mean_return": score, "normalised_return": score}
        record |= {"exact_normalised": score, "exact_success": score, "value_error": 100 / place}
        record |= {"probe_q": 1.0, "start_value": 1.0, "discounted_return": 0.5}
        lines += [{"kind": "training", "step": step}] * 10 + [record]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (folder / "records.jsonl").write_text(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs and the report, and print how long that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--out", type=Path, default=file_of("reporting"), help="write the numbers here as JSON")
    parser.add_argument("--browser", action="store_true", help="open the page in Chromium, five times")
    asked = parser.parse_args(arguments)
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        count = 0
        for count, config in enumerate(configurations(asked.runs), 1):
            write_run(root / "results" / "runs" / f"run-{count}", config, float(generator.uniform()))
        started = time.perf_counter()
        backsweep(["report", str(root / "results"), "--out", str(root / "report")])
        seconds = time.perf_counter() - started
        pictures = len(list((root / "report" / "figures").glob("*.png")))
        opening = seconds_to_open(root / "report" / "index.html") if asked.browser else None
    found = {"runs": count, "pictures": pictures, "seconds": round(seconds, 1), "opening": opening, "machine": facts()}
    print(f"{count} runs, {pictures} pictures: {seconds:.1f} s")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
