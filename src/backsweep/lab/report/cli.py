"""The command `backsweep report`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_commands(subparsers: Any) -> None:
    """Add ``backsweep report``; it sets `run`, from the parsed arguments to an exit code."""
    parser = subparsers.add_parser("report", help="make a page, pictures and tables from the results of experiments")
    parser.add_argument("results", type=Path, help="the folder of results")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        help="the report's folder, or a file name ending in .html for the page alone",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        help="also write the verdicts between the marked lines of this file, and draw its pictures again",
    )
    parser.set_defaults(run=report_command, extra="report")


def report_command(parsed: argparse.Namespace) -> int:
    """Write the report and print the verdicts."""
    from backsweep.agent.palette import pyplot
    from backsweep.cores import usable_cores
    from backsweep.lab.report.answers import make_report
    from backsweep.lab.report.markdown import BEGIN, END
    from backsweep.lab.report.marked_text import replace_between
    from backsweep.lab.report.report_files import write_markdown, write_page, write_report
    from backsweep.record_files import PACKED

    if parsed.markdown is not None:  # a page without the marked lines is refused before the work, not after it
        replace_between(parsed.markdown.read_text(encoding="utf-8"), BEGIN, END, "")
    if not parsed.results.is_dir():
        raise ValueError(f"{parsed.results} is not a folder of results")
    if not any(any(parsed.results.rglob(f"*.jsonl{packed}")) for packed in ("", *PACKED)):
        raise ValueError(f"{parsed.results} holds no results: no file of records (*.jsonl)")
    alone = parsed.out.suffix == ".html"
    if parsed.out.exists() and parsed.out.is_dir() == alone:
        expected, found = ("a file", "a folder") if alone else ("a folder or a name ending in .html", "a file")
        raise ValueError(f"--out must be {expected}, and {parsed.out} is {found}")
    if not alone or parsed.markdown is not None:
        pyplot("report")  # without matplotlib, say so before the work, not after it
    report = make_report(parsed.results, _say)
    evidence = report.evidence
    page = write_page(report, parsed.out) if alone else write_report(report, parsed.out, usable_cores(), _say)
    if parsed.markdown is not None and not evidence.damaged:
        _say(f"writing {parsed.markdown} and its pictures ...")
        write_markdown(report, parsed.markdown)
    wide = [max(map(len, column)) for column in zip(*((a.id, a.verdict.headline) for a in report.answers), strict=True)]
    for answer in report.answers:
        print(f"{answer.id:<{wide[0]}}  {answer.verdict.headline:<{wide[1]}}  {answer.title}")
    for remark in report.remarks:
        print(f"note: {remark}")
    if evidence.tuning and not evidence.runs:
        count = len(evidence.tuning)
        said = (
            "the run has a tuning seed, which counts"
            if count == 1
            else f"all {count:,} runs have tuning seeds, which count"
        )
        print(f"note: {said} for no claim")
    elif all(answer.verdict.outcome == "not run" for answer in report.answers):
        print(
            f"note: no run in {parsed.results} belongs to a question of `backsweep experiment list`; single runs are "
            "shown by `backsweep evaluate`, `watch` and `view`"
        )
    print(page)
    for text in dict.fromkeys(evidence.damaged):
        print(f"backsweep: left out: {text}", file=sys.stderr)
    if evidence.damaged and parsed.markdown is not None:
        print(f"backsweep: {parsed.markdown} is left as it was", file=sys.stderr)
    return 1 if evidence.damaged else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
