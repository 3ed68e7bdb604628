"""The verdicts as Markdown, between two markers of a file that is otherwise written by hand."""

from __future__ import annotations

from typing import Any

from backsweep.lab.report.answers import Answer, Report, by_kind
from backsweep.lab.report.tables import shown, side_by_side

BEGIN = "<!-- made by `backsweep report`: do not edit by hand -->"
LONGEST = 16  # rows of a table that are shown in full
END = "<!-- end of what `backsweep report` made -->"


def check_markers(text: str) -> None:
    """Refuse a file without the two markers."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the file must hold the lines {BEGIN!r} and {END!r}")


def with_block(text: str, report: Report) -> str:
    """Return a file's text with the block between its markers made anew."""
    check_markers(text)
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + "\n\n" + block(report) + "\n" + END + rest.split(END, 1)[1]


def block(report: Report) -> str:
    """Return the verdict table, and below it each claim that was decided."""
    lines = []
    for title, answers in by_kind(report.answers).items():
        lines += [f"### {title}", "", "| id | question | verdict |", "| --- | --- | --- |"]
        lines += [f"| {answer.id} | {answer.title} | **{answer.verdict.headline}** |" for answer in answers]
        lines.append("")
    lines.pop()
    for answer in report.answers:
        if answer.verdict.outcome != "not run":
            lines += ["", *_section(answer)]
    if report.remarks:
        lines += ["", "### About the records", "", *(f"- {remark}" for remark in report.remarks)]
    return "\n".join(lines) + "\n"


def _section(answer: Answer) -> list[str]:
    question, verdict = answer.question, answer.verdict
    lines = [f"### {answer.id}: {answer.title}", ""]
    whose = "The paper" if question.kind == "paper" else "The goal"
    lines += [f"*{whose}:* {question.claim}", "", f"*Decided by:* {question.decided_by}", ""]
    lines += [f"**{verdict.headline}.** {verdict.found}", ""]
    if verdict.parts:
        lines += ["| part of the claim | found | holds |", "| --- | --- | --- |"]
        lines += [
            f"| {_cell(part.text)} | {_cell(part.found)} | {'undecided' if part.holds is None else shown(part.holds)} |"
            for part in verdict.parts
        ]
        lines.append("")
    table = verdict.table if len(verdict.table) <= LONGEST else medians(verdict.table)
    lines += _table(answer.scores)
    for title, rows in answer.by_task.items():
        lines += [f"*{title}:*", "", *_table(side_by_side(rows))]
    lines += _table(table)
    for title, rows in verdict.more.items():
        if rows:
            lines += [f"*{title}:*", "", *_table(side_by_side(rows))]
    lines += [f"![{chart.title}](images/{chart.name}.png)" for chart in answer.charts]
    return lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table and an empty one; none for an empty table."""
    if not rows:
        return []
    columns = list(dict.fromkeys(name for row in rows for name in row))
    body = ["| " + " | ".join(_cell(shown(row.get(name))) for name in columns) + " |" for row in rows]
    return ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |", *body, ""]


def medians(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a long table of medians with a column per method; nothing for tables of another kind."""
    settings = ("batch", "initial values", "target copied every")
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if "median backups" in row and "method" in row:
            line = found.setdefault(tuple(row[name] for name in settings), {name: row[name] for name in settings})
            line[row["method"]] = row["median backups"].estimate
    return list(found.values())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
