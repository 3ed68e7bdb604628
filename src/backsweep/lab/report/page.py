"""The page: one file of HTML with its style, its scripts and its numbers inside, so that it opens from disk."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import Any

from backsweep.lab.claims.verdict import Verdict
from backsweep.lab.report.answers import SETTINGS_IN_WORDS, Answer, Report, by_kind
from backsweep.lab.report.figures import colour_places
from backsweep.lab.report.tables import shown, side_by_side, table_name
from backsweep.lab.studies.tabular.setting import METHODS

MOST_ROWS = 400


def page_of(report: Report) -> str:
    """Return the whole page."""
    chain = chain_player(report)
    charts = {
        chart.name: {
            **chart.to_json(),
            "colours": colour_places(list(dict.fromkeys(s.name for f in chart.facets for s in f.series))),
        }
        for answer in report.answers
        for chart in answer.charts
    }
    data = json.dumps({"charts": charts, "chain": chain}, separators=(",", ":")).replace("<", "\\u003c")
    claims = [answer for answer in report.answers if answer.question.kind == "paper" and answer.usual]
    sections = "\n".join(_section(answer, chain is not None) for answer in report.answers)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>backsweep: the paper's claims, tested</title>
<link rel="icon" href="data:,">
<style>
{_asset("page.css")}</style>
</head>
<body>
<main>
<h1>The paper's claims, tested</h1>
<p>Topological Experience Replay makes {len(claims)} claims. Each has a question, runs that answer it, and a
rule that decides it. The rules about training were written before any run; those of the chain and of what is
measured directly were put into words after small trials on seeds that are not reported, and C21 was corrected twice and
run again on the same seeds. {_counted(report)}</p>
<section id="verdicts">{_verdicts(report.answers)}
<p class=soft>Also as <a href="verdicts.csv">CSV</a>.</p></section>
{sections}
{_remarks(report)}
</main>
<script type="application/json" id="data">{data}</script>
<script>
{_asset("charts.js")}</script>
<script>
{_asset("chain.js")}</script>
</body>
</html>
"""


def chain_player(report: Report) -> dict[str, Any] | None:
    """Return every backup of a few runs on the chain, for the reader to step through."""
    traces = report.evidence.of_kind("trace")
    if not traces:
        return None
    longest = max(record["length"] for record in traces)
    traces = [record for record in traces if record["length"] == longest]
    views = []
    for target in sorted({record["target_every"] for record in traces}):
        same = {record["method"]: record["steps"] for record in traces if record["target_every"] == target}
        label = "no target table" if target == 0 else f"target table copied every {target} backups"
        views.append({"label": label, "traces": {method: same[method] for method in METHODS if method in same}})
    return {"length": longest, "views": views}


def table_html(rows: list[dict[str, Any]], kind: str = "") -> str:
    """Return rows as an HTML table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=number' if not isinstance(row.get(name), str) else ''}>{escape(shown(row.get(name)))}</td>"
            for name in columns
        )
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = f"<p class=soft>{len(rows) - MOST_ROWS} more rows are in the CSV.</p>" if len(rows) > MOST_ROWS else ""
    return (
        f'<div class=wide><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'
    )


def _verdicts(answers: list[Answer]) -> str:
    """Return a table of verdicts for each kind of question."""
    tables = []
    for title, group in by_kind(answers).items():
        rows = "".join(
            f'<tr><td>{answer.id}</td><td><a href="#{_anchor(answer)}">{escape(answer.title)}</a></td>'
            f"<td>{_badge(answer.verdict)}</td><td class=soft>{escape(_in_short(answer.verdict))}</td></tr>"
            for answer in group
        )
        tables.append(
            f'<h2>{escape(title)}</h2><table class="verdicts"><thead><tr><th scope=col>id</th><th scope=col>question'
            f"</th><th scope=col>verdict</th><th scope=col>in short</th></tr></thead><tbody>{rows}</tbody></table>"
        )
    return "\n".join(tables)


def _section(answer: Answer, with_chain: bool) -> str:
    question, verdict = answer.question, answer.verdict
    parts = [
        f'<section id="{_anchor(answer)}"><h2>{answer.id}. {escape(answer.title)} {_badge(verdict)}</h2>',
        f"<p>{escape(question.question)}</p>",
        "<dl>",
        *(
            f"<dt>{name}</dt><dd>{escape(text)}</dd>"
            for name, text in (
                ("The paper says" if question.kind == "paper" else "The goal", question.claim),
                ("Measured", question.metric),
                ("Decided by", question.decided_by),
                ("Found", verdict.found),
                ("Missing", question.missing),
            )
            if text
        ),
        "</dl>",
    ]
    if verdict.parts:
        rows = [
            {
                "part of the claim": part.text,
                "found": part.found,
                "holds": "undecided" if part.holds is None else ("yes" if part.holds else "no"),
            }
            for part in verdict.parts
        ]
        parts.append(table_html(rows))
    if question.id == "C1" and with_chain:
        parts.append(
            '<h3 id="nchain">Watch values flow back</h3><p class=soft>Every strip is the chain under one method, all '
            "on the same data set, one transition per backup. The fuller a cell, the higher its best value; arrows "
            "show the greedy action, the red frame the state that was just backed up.</p>"
            '<div id="nchain-player" class="player"></div>'
        )
    parts += [f'<figure data-chart="{chart.name}"></figure>{_files(chart.name)}' for chart in answer.charts]
    if answer.scores:
        parts.append("<h3>Scores</h3>" + table_html(answer.scores))
    for title, rows in answer.by_task.items():
        parts.append(f"<h3>{escape(title)}</h3>" + table_html(side_by_side(rows)))
    if verdict.table:
        link = f'<p class=soft><a href="tables/{answer.slug}.csv">As CSV</a></p>'
        body = table_html(verdict.table) + link
        opened = " open" if len(verdict.table) <= 16 else ""
        parts.append(f"<details{opened}><summary>Numbers ({len(verdict.table)} rows)</summary>{body}</details>")
    for title, rows in verdict.more.items():
        if rows:
            link = f'<p class=soft><a href="tables/{table_name(answer.slug, title)}">As CSV</a></p>'
            body = table_html(side_by_side(rows)) + link
            parts.append(f"<details open><summary>{escape(title)}</summary>{body}</details>")
    if answer.sources:
        parts.append(f"<details><summary>Configuration and records</summary>{table_html(answer.sources)}</details>")
    elif verdict.records:
        plan = question.plan("paper")
        name = getattr(plan, "name", "")
        seeds: tuple[int, ...] = getattr(plan, "seeds", (0,))
        text = f"{verdict.records:,} records in <code>{escape(name)}/</code>, seeds {min(seeds)} to {max(seeds)}."
        again = f"<code>backsweep experiment run {question.id} --scale paper</code> makes them again."
        parts.append(f"<details><summary>Configuration and records</summary><p>{text} {again}</p></details>")
    parts.append("</section>")
    return "\n".join(parts)


def _anchor(answer: Answer) -> str:
    return answer.id.replace(" ", "-")


def _files(name: str) -> str:
    return f'<p class=soft><a href="figures/{name}.png">PNG</a> · <a href="figures/{name}.csv">CSV</a></p>'


def _badge(verdict: Verdict) -> str:
    return f'<span class="badge {verdict.outcome.replace(" ", "-")}">{verdict.headline}</span>'


def _counted(report: Report) -> str:
    counts: dict[str, int] = {}
    for answer in report.answers:
        if answer.question.kind == "paper" and answer.usual:
            counts[answer.verdict.outcome] = counts.get(answer.verdict.outcome, 0) + 1
    parts = [f"{count} {outcome}" for outcome, count in sorted(counts.items(), key=lambda item: -item[1])]
    again = ""
    for whom, words in SETTINGS_IN_WORDS.items():
        if ids := [answer.question.id for answer in report.answers if answer.follows == whom and not answer.usual]:
            again += f" Run once more with {words}: {', '.join(ids)}."
    runs = len(report.evidence.runs)
    records = sum(map(len, report.evidence.records.values()))
    return escape(
        f"So far: {', '.join(parts)}.{again} The page rests on {runs:,} training runs and {records:,} other records."
    )


def _remarks(report: Report) -> str:
    if not report.remarks:
        return ""
    items = "".join(f"<li>{escape(remark)}</li>" for remark in report.remarks[:200])
    return f'<section id="remarks"><h2>About the records</h2><ul>{items}</ul></section>'


def _in_short(verdict: Verdict) -> str:
    first_sentence = verdict.summary.split(". ")[0].rstrip(".") + "."
    return f"{verdict.parts_in_words} {first_sentence}"


def _asset(name: str) -> str:
    return resources.files("backsweep.lab.report").joinpath("assets", name).read_text(encoding="utf-8")
