"""The paper's claims in one table: what it states, what came out with each choice of settings, what is still open."""

from __future__ import annotations

from html import escape

from backsweep.lab.claims.question import Grid, Question
from backsweep.lab.claims.questions import CLAIMS
from backsweep.lab.report.answers import Answer, Report
from backsweep.lab.report.tables import table_html

TITLE = "The paper's claims side by side"
COLUMNS = {"paper": "with its settings", "released": "with the released code's", "ours": "with scaled rewards (ours)"}
"""What the columns of results are called, by the settings of their runs."""
_NONE = "-"


def comparison_entries(report: Report) -> list[dict[str, str]]:
    """Return an entry for each claim."""
    return [_entry(question, report) for question in CLAIMS]


def comparison_html(report: Report) -> str:
    """Return the table in HTML."""
    text = (
        "A claim is reproduced, not reproduced, or inconclusive: it cannot be decided with this much data. Numbers are "
        "those of the comparison that is least in its favour, with its interval. What is measured without training "
        "stands in the first column of results."
    )
    entries = comparison_entries(report)
    empty = {column for column in entries[0] if all(entry[column] == _NONE for entry in entries)}
    table = table_html([{name: entry[name] for name in entry if name not in empty} for entry in entries], TITLE)
    fold = f'<details class="claim" id="compared"><summary><h3>{escape(TITLE)}</h3></summary>'
    return f"<section>{fold}<div><p>{escape(text)}</p>{table}</div></details></section>"


def _entry(question: Question, report: Report) -> dict[str, str]:
    answers = {answer.follows: answer for answer in report.answers if answer.question is question}
    cells = {title: _result(answers.get(settings)) for settings, title in COLUMNS.items()}
    return {
        "claim": f"{question.id}. {question.title}",
        "the paper": question.stated,
        **cells,
        "what it would take": _open(question, list(answers.values())),
    }


def _result(answer: Answer | None) -> str:
    if answer is None or answer.verdict.outcome == "not run":
        return _NONE
    verdict = answer.verdict
    return f"{verdict.headline}: {verdict.number or answer.short.rstrip('.')}"


def _open(question: Question, answers: list[Answer]) -> str:
    """Return what a decision would take where there is none; for a claim without records, its runs."""
    run = [answer for answer in answers if answer.verdict.outcome != "not run"]
    if run:
        needs = [_needs(answer) for answer in run if answer.verdict.outcome == "inconclusive"]
        return "; ".join(needs) or _NONE
    grid = question.plan("paper")
    return _runs(grid) if isinstance(grid, Grid) else (question.missing or _NONE)


def _needs(answer: Answer) -> str:
    """Return what would decide an answer that is open: more seeds, or the training that is missing."""
    if not answer.verdict.needs and (trained := answer.question.trains.get("paper")) is not None:
        return _runs(trained)
    return f"{answer.verdict.needs_in_words or 'more records'} ({COLUMNS[answer.follows]})"


def _runs(grid: Grid) -> str:
    counts = ((len(grid.tasks), "task"), (len(grid.variants), "line"), (len(grid.seeds), "seed"))
    return f"{len(grid.runs()):,} runs: " + ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts)
