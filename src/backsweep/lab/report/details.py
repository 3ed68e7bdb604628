"""The details of each claim, folded: question, rule, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from backsweep.lab.claims.verdict import Table, Verdict
from backsweep.lab.report.answers import Answer, Report
from backsweep.lab.report.cards import anchor, badge
from backsweep.lab.report.html_tables import table_html
from backsweep.lab.report.tables import side_by_side, table_name
from backsweep.lab.report.words import readable

MARKS = {
    True: ("✓", "holds", "holds"),
    False: ("✗", "does-not-hold", "does not hold"),
    None: ("?", "inconclusive", "open"),
}


def details_html(report: Report, files: bool) -> str:
    """Return all claims; `files` says whether pictures and tables are stored next to the page."""
    claims = "\n".join(_claim(answer, files) for answer in report.answers if answer.verdict.outcome != "not run")
    waiting = [_claim(answer, files) for answer in report.answers if answer.verdict.outcome == "not run"]
    if waiting:
        fold = f'<details class="fold"><summary>Not run yet: {len(waiting)} claims with their rules</summary>'
        claims += fold + "\n".join(waiting) + "</details>"
    also = ' <a href="verdicts.csv">All verdicts as CSV.</a>' if files else ""
    intro = f'<p class="soft">Unfold a claim for its charts.{also}</p>'
    return f'<section id="details"><h2>Details</h2>{intro}{claims}</section>'


def _claim(answer: Answer, files: bool) -> str:
    question, verdict = answer.question, answer.verdict
    first = (
        ("The paper says" if question.kind == "paper" else "The goal", question.claim),
        ("Found", answer.short if verdict.short else verdict.found),
        ("In numbers", verdict.summary if verdict.short else ""),
        ("Keep in mind", answer.caution),
        ("Missing", question.missing),
    )
    html = [
        f'<details class="claim" id="{anchor(answer)}"><summary><h3>{answer.id}. {escape(answer.title)}</h3>',
        f"{badge(verdict)}</summary><div><p>{escape(question.question)}</p>",
        _described(first),
    ]
    for chart in answer.charts:
        html.append(f'<figure data-chart="{chart.name}"><figcaption>{escape(chart.title)}</figcaption></figure>')
        if files:
            name = f"figures/{chart.name}"
            html.append(f'<p class="soft small"><a href="{name}.png">PNG</a> · <a href="{name}.csv">CSV</a></p>')
    rule = _described((("Measured", question.metric), ("Decided by", question.decided_by)))
    html.append(
        _fold(" ".join(("How it is decided.", escape(verdict.checks_in_words))).strip(), rule + _checks(verdict))
    )
    if tables := _tables(answer, files):
        html.append(_fold("Show numbers", "".join(tables)))
    html.append("</div></details>")
    return "\n".join(html)


def _described(words: Sequence[tuple[str, str]]) -> str:
    lines = (f"<dt>{name}</dt><dd>{escape(readable(text))}</dd>" for name, text in words if text)
    return f"<dl>{''.join(lines)}</dl>"


def _fold(title: str, body: str) -> str:
    return f'<details class="numbers"><summary>{title}</summary>{body}</details>'


def _checks(verdict: Verdict) -> str:
    """Return the checks of a claim, each with whether it holds."""
    items = [
        f'<li><span class="{kind}" title="{said}" role="img" aria-label="{said}">{mark}</span>'
        f'<span>{escape(readable(check.text))}: <span class="found">{escape(readable(check.found))}</span></span></li>'
        for check in verdict.checks
        for mark, kind, said in [MARKS[check.holds]]
    ]
    return f'<ul class="parts">{"".join(items)}</ul>' if items else ""


def _tables(answer: Answer, files: bool) -> list[str]:
    verdict = answer.verdict
    found: list[tuple[str, Table, str]] = []
    found.append(("Scores", answer.scores, f"{answer.slug}-scores.csv"))
    found += [(title, side_by_side(entries), "") for title, entries in answer.by_task.items()]
    found.append(("All comparisons", verdict.table, f"{answer.slug}.csv"))
    found += [(title, side_by_side(entries), table_name(answer.slug, title)) for title, entries in verdict.more.items()]
    found.append(("Configuration and records", answer.sources, ""))
    html = []
    for title, entries, file in found:
        if entries:
            link = f'<p class="soft small"><a href="tables/{file}">As CSV</a></p>' if files and file else ""
            html.append(f"<h4>{escape(title)}</h4>{table_html(entries, title)}{link}")
    if not answer.sources and verdict.records:
        plan = answer.question.plan("paper")
        name = getattr(plan, "name", "")
        seeds: tuple[int, ...] = getattr(plan, "seeds", (0,))
        text = f"{verdict.records:,} records in <code>{escape(name)}/</code>, seeds {min(seeds)} to {max(seeds)}."
        again = f"<code>backsweep experiment run {answer.question.id} --scale paper</code> makes them again."
        html.append(f'<p class="small">{text} {again}</p>')
    return html


def remarks_html(report: Report) -> str:
    """Return the number of records and the remarks about them."""
    runs = len(report.evidence.runs)
    records = sum(map(len, report.evidence.records.values()))
    items = "".join(f"<li>{escape(remark)}</li>" for remark in report.remarks[:200])
    return (
        '<section id="remarks"><h2>About the records</h2><p>The rules about training were written before the runs that '
        "they decide. Those about the chain and about direct measurements were written after small trials on "
        "seeds that are not reported here; C21 was corrected twice and run again on the same seeds. "
        f"The page uses {runs:,} training runs and {records:,} other records.</p>"
        f'<ul class="small">{items}</ul></section>'
    )
