"""The verdicts as Markdown."""

from __future__ import annotations

from backsweep.lab.report.answers import Answer, Report, by_kind
from backsweep.lab.report.comparison import TITLE, comparison_entries

BEGIN = "<!-- made by `backsweep report`: do not edit by hand -->"
END = "<!-- end of what `backsweep report` made -->"


def block(report: Report) -> str:
    """Return a table with a line for each question: its verdict, and the result in one sentence."""
    lines = []
    for title, answers in by_kind(report.answers).items():
        run = [answer for answer in answers if answer.verdict.outcome != "not run"]
        waiting = [answer for answer in answers if answer.verdict.outcome == "not run"]
        lines += [f"**{title}**", ""]
        if run:
            lines += ["| question | verdict | in short |", "| --- | --- | --- |", *map(_line, run), ""]
        if waiting:
            lines += [f"Not run yet: {', '.join(answer.id for answer in waiting)}.", ""]
    return "\n".join([*lines, *_comparison(report)])


def _comparison(report: Report) -> list[str]:
    entries = comparison_entries(report)
    head = list(entries[0])
    body = [f"| {' | '.join(_cell(text) for text in entry.values())} |" for entry in entries]
    return [f"**{TITLE}**", "", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body, ""]


def _line(answer: Answer) -> str:
    short = " ".join(filter(None, (answer.short, answer.caution)))
    return f"| {answer.id}. {_cell(answer.title)} | **{answer.verdict.headline}** | {_cell(short)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
