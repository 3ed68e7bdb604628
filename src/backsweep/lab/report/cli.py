"""The command `backsweep report`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(subparsers: Any) -> None:
    """Add ``backsweep report``; it sets `run`, from the parsed arguments to an exit code."""
    parser = subparsers.add_parser("report", help="make a page, pictures and tables from a folder of results")
    parser.add_argument("results", type=Path, help="the folder of results")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        help="the folder where the report goes (default: report), or a name ending in .html for the page alone",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        help="also write the verdicts between the marked lines of this file and redraw its pictures",
    )
    parser.set_defaults(run=report_command)


def report_command(parsed: argparse.Namespace) -> int:
    """Write the report and print the verdicts."""
    from backsweep.lab.report.answers import make_report
    from backsweep.lab.report.markdown import BEGIN, END
    from backsweep.lab.report.marked_text import replace_between
    from backsweep.lab.report.report_files import write_markdown, write_page, write_report
    from backsweep.lab.runs.engine import usable_cores

    if parsed.markdown is not None:  # a page without the marked lines is refused before the work, not after it
        replace_between(parsed.markdown.read_text(encoding="utf-8"), BEGIN, END, "")
    if not parsed.results.is_dir():
        raise ValueError(f"{parsed.results} is not a folder of results")
    if not any(parsed.results.rglob("*.jsonl")) and not any(parsed.results.rglob("*.jsonl.gz")):
        raise ValueError(f"{parsed.results} holds no results: no file of records (*.jsonl)")
    alone = parsed.out.suffix == ".html"
    if parsed.out.exists() and parsed.out.is_dir() == alone:
        expected, found = ("a file", "a folder") if alone else ("a folder or a name ending in .html", "a file")
        raise ValueError(f"--out must be {expected}, and {parsed.out} is {found}")
    report = make_report(parsed.results)
    page = write_page(report, parsed.out) if alone else write_report(report, parsed.out, usable_cores())
    if parsed.markdown is not None:
        write_markdown(report, parsed.markdown)
    wide = [max(map(len, column)) for column in zip(*((a.id, a.verdict.headline) for a in report.answers), strict=True)]
    for answer in report.answers:
        print(f"{answer.id:<{wide[0]}}  {answer.verdict.headline:<{wide[1]}}  {answer.title}")
    for remark in report.remarks:
        print(f"note: {remark}")
    print(page)
    return 0
