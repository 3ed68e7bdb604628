"""The overview: a card for each claim, and the table of contents."""

from __future__ import annotations

from html import escape

from backsweep.lab.claims.verdict import Verdict
from backsweep.lab.report.answers import Answer, Report, by_kind
from backsweep.lab.report.chart import CARD_CATEGORIES, AnyChart, DotChart


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
