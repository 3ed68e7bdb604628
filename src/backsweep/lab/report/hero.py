"""The page's first screen: three sentences, how soon each method solves each task, and the animated chain."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from backsweep.agent.palette import in_order
from backsweep.lab.report.answers import Report
from backsweep.lab.report.solving_time import soonest_sentence
from backsweep.lab.studies.tabular.setting import METHODS

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
        views.append({"label": label, "traces": {name: same[name] for name in in_order(METHODS) if name in same}})
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
