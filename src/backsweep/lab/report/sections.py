"""Sections of the page: the first screen, the table of contents, a card for each claim, and the details of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from backsweep.agent.palette import in_order
from backsweep.lab.claims.question import Table, Verdict
from backsweep.lab.report.answers import Answer, Report, by_kind
from backsweep.lab.report.chart import CARD_CATEGORIES, AnyChart, DotChart
from backsweep.lab.report.solving_time import soonest_sentence
from backsweep.lab.report.tables import readable, side_by_side, table_html, table_name
from backsweep.lab.studies.tabular.learner import METHODS, PLANNED

ELSEWHERE = "elsewhere"
OUTCOMES = (
    ("reproduced", "{} reproduced"),
    ("not reproduced", "{} not"),
    ("inconclusive", "{} open"),
    (ELSEWHERE, "{} run with other settings only"),
    ("not run", "{} not run yet"),
)


def sentences(report: Report) -> list[str]:
    """Return the main results, in at most three sentences."""
    found = [] if report.soonest is None else [soonest_sentence(report.soonest)]
    return [text for text in (*found, _about_order(report), _about_claims(report)) if text]


def _about_order(report: Report) -> str:
    """Return whether TER does better than the same rows in random order, by C3."""
    for answer in report.answers:
        entries = [
            entry for entry in answer.verdict.table if entry.get("against") == "ter-shuffled" and "p (Holm)" in entry
        ]
        if answer.question.id == "C3" and answer.usual and entries:
            entry = entries[0]
            lead, clear = entry["difference"], entry["p (Holm)"] <= 0.05
            by = f"by {abs(lead.estimate):.2f} of a score from 0 to 1 over {entry['tasks']} tasks (paper's settings)"
            if clear and lead.estimate < 0:
                return f"The order of TER's sweep is not what helps: the same rows in random order do better, {by}."
            if clear:
                return f"The order of TER's sweep helps: the same rows in random order do worse, {by}."
            return "TER does about as well when its rows come in random order, so the order is not shown to help."
    return ""


def _about_claims(report: Report) -> str:
    answers = [answer for answer in report.answers if answer.question.kind == "paper"]
    claims = {answer.question.id for answer in answers}
    usual = {answer.question.id: answer.verdict.outcome for answer in answers if answer.usual}
    counts: Counter[str] = Counter(usual.get(claim, ELSEWHERE) for claim in claims)
    found = [words.format(counts[outcome]) for outcome, words in OUTCOMES if counts[outcome]]
    return f"Of the {len(claims)} claims of the paper on Topological Experience Replay: {', '.join(found)}."


def chain_player(report: Report) -> dict[str, Any] | None:
    """Return every backup of a few runs on the chain, for the animation."""
    traces = report.evidence.of_kind("trace")
    if not traces:
        return None
    longest = max(record["length"] for record in traces)
    traces = [record for record in traces if record["length"] == longest]
    views = []
    for target in sorted({record["target_every"] for record in traces}):
        same = {record["method"]: record["steps"] for record in traces if record["target_every"] == target}
        label = "no target table" if target == 0 else f"target table copied every {target} backups"
        known = [name for name in in_order([*PLANNED, *METHODS]) if name in same]
        views.append({"label": label, "traces": {name: same[name] for name in known}})
    return {"length": longest, "views": views}


def hero_html(report: Report, with_chain: bool) -> str:
    """Return the first screen."""
    said = "".join(f"<li>{escape(text)}</li>" for text in sentences(report))
    html = []
    if report.soonest is not None:
        drawn, known = len(report.soonest.drawn), len(report.soonest.methods)
        some = (
            f'<p class="soft small">The {drawn} of {known} methods that solve most tasks; '
            '<a href="#G1">all of them</a>.</p>'
            if drawn < known
            else ""
        )
        html.append(
            '<figure id="soonest" class="panel-card" data-chart="soonest"><figcaption>How soon each method solves each '
            f"task: environment steps until 90% of episodes are solved for good</figcaption>{some}</figure>"
        )
    if with_chain:
        html.append(
            '<section id="chain" class="panel-card"><h2>Watch values flow back along a chain</h2><p class="soft small">'
            "Each strip is the same chain and the same experience, one transition per backup. The fuller a cell, the "
            "higher its value; arrows show the best action, the frame the state just backed up.</p>"
            '<div id="nchain-player"></div></section>'
        )
    return (
        '<section id="top"><h1>Which replay learns soonest?</h1>'
        f'<ul class="lead">{said}</ul><div class="first">{"".join(html)}</div></section>'
    )


def anchor(answer: Answer) -> str:
    """Return the anchor of an answer's details."""
    return answer.id.replace(" ", "-")


def badge(verdict: Verdict) -> str:
    """Return a verdict as a coloured badge."""
    text = f"{verdict.outcome} ({verdict.about} run)" if verdict.about else verdict.outcome
    return f'<span class="badge {outcome_class(verdict)}">{escape(text)}</span>'


def outcome_class(verdict: Verdict) -> str:
    """Return the CSS class of an outcome."""
    return verdict.outcome.replace(" ", "-")


def cards_html(report: Report) -> str:
    """Return a card for each question that was run, and a list of the others."""
    html = ['<section id="claims"><h2>What was asked, and what came out</h2>']
    for title, answers in by_kind(report.answers).items():
        run = [answer for answer in answers if answer.verdict.outcome != "not run"]
        waiting = [answer for answer in answers if answer.verdict.outcome == "not run"]
        if not answers:
            continue
        html.append(f"<h3>{escape(title)}</h3>")
        if run:
            html.append(f'<div class="cards">{"".join(map(_card, run))}</div>')
        if waiting:
            items = "".join(f'<li><a href="#{anchor(a)}">{a.id}. {escape(a.title)}</a></li>' for a in waiting)
            html.append(f'<p class="soft small">Not run yet:</p><ul class="waiting">{items}</ul>')
    html.append("</section>")
    return "\n".join(html)


def _card(answer: Answer) -> str:
    caution = f'<p class="caution">{escape(answer.caution)}</p>' if answer.caution else ""
    picture = _small(answer.charts[0]) if answer.charts else ""
    return (
        f'<article class="card"><div>{badge(answer.verdict)}</div><h4>{answer.id}. {escape(answer.title)}</h4>'
        f"<p>{escape(answer.short)}</p>{caution}{picture}"
        f'<a class="more" href="#{anchor(answer)}">Details of {answer.id}</a></article>'
    )


def _small(chart: AnyChart) -> str:
    """Return a small chart; its caption says which of its views or categories it shows."""
    shown = chart.title
    if isinstance(chart, DotChart):
        if len(chart.categories) > CARD_CATEGORIES:
            shown += f"; the first {CARD_CATEGORIES} of {len(chart.categories)}"
    elif len(chart.facets) > 1:
        shown += f"; {chart.facets[chart.first].label}"
    return f'<figure data-chart="{chart.name}" data-mini><figcaption>{escape(shown)}</figcaption></figure>'


def contents_html(report: Report, with_chain: bool) -> str:
    """Return the table of contents."""
    places = [("top", "In short")]
    places += [("soonest", "How soon each method learns")] if report.soonest is not None else []
    places += [("chain", "The chain, step by step")] if with_chain else []
    places += [("claims", "All claims as cards"), ("compared", "The claims side by side")]
    top = "".join(f'<li><a href="#{place}">{text}</a></li>' for place, text in places)
    html = [f'<a class="brand" href="#top">backsweep</a><ul>{top}</ul>']
    for title, answers in by_kind(report.answers).items():
        items = "".join(
            f'<li><a href="#{anchor(answer)}"><span class="mark {outcome_class(answer.verdict)}" aria-hidden="true">'
            f"</span><span>{answer.id}. {escape(answer.title)}</span></a></li>"
            for answer in answers
        )
        html.append(f"<h2>{escape(title)}</h2><ul>{items}</ul>")
    if report.remarks:
        html.append('<h2>Records</h2><ul><li><a href="#remarks">About the records</a></li></ul>')
    return f'<nav id="contents" aria-label="Contents">{"".join(html)}</nav>'


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
        what = "1 claim with its rule" if len(waiting) == 1 else f"{len(waiting)} claims with their rules"
        fold = f'<details class="fold"><summary>Not run yet: {what}</summary>'
        claims += fold + "\n".join(waiting) + "</details>"
    also = ' <a href="verdicts.csv">All verdicts as CSV.</a>' if files else ""
    intro = f'<p class="soft">Unfold a claim for its charts.{also}</p>'
    return f'<section id="details"><h2>Details</h2>{intro}{claims}</section>'


def _claim(answer: Answer, files: bool) -> str:
    question, verdict = answer.question, answer.verdict
    first = (
        (question.claimed_by, question.claim),
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
        "they decide, unless a rule itself says otherwise. Those about the chain and about direct measurements were "
        "written after small trials on seeds that are not reported here; C21 was corrected twice and run again on the "
        "same seeds. "
        f"The page uses {_counted(runs, 'training run')} and {_counted(records, 'other record')}.</p>"
        f'<ul class="small">{items}</ul></section>'
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
