"""The verdicts as Markdown, between two markers of a file that is otherwise written by hand."""

from __future__ import annotations

from backsweep.lab.report.answers import Answer, Report, by_kind

BEGIN = "<!-- made by `backsweep report`: do not edit by hand -->"
END = "<!-- end of what `backsweep report` made -->"


def check_markers(text: str) -> None:
    """Refuse a file without the two markers."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the file must hold the lines {BEGIN!r} and {END!r}")


def with_block(text: str, report: Report) -> str:
    """Return a file's text with the block between its markers replaced."""
    check_markers(text)
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + "\n\n" + block(report) + "\n" + END + rest.split(END, 1)[1]


def block(report: Report) -> str:
    """Return a line for each question: the verdict, and what came out in one sentence. All numbers are on the page."""
    lines = []
    for title, answers in by_kind(report.answers).items():
        run = [answer for answer in answers if answer.verdict.outcome != "not run"]
        waiting = [answer for answer in answers if answer.verdict.outcome == "not run"]
        lines += [f"**{title}**", ""]
        if run:
            lines += ["| question | verdict | in short |", "| --- | --- | --- |", *map(_line, run), ""]
        if waiting:
            lines += [f"Not run yet: {', '.join(answer.id for answer in waiting)}.", ""]
    return "\n".join(lines)


def _line(answer: Answer) -> str:
    short = " ".join(filter(None, (answer.short, answer.caution)))
    return f"| {answer.id}. {_cell(answer.title)} | **{answer.verdict.headline}** | {_cell(short)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
