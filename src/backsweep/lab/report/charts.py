"""Which charts each question has."""

from __future__ import annotations

from collections.abc import Callable

from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.verdict import Verdict
from backsweep.lab.report import chain_charts, measured_charts
from backsweep.lab.report.chart import AnyChart
from backsweep.lab.report.learning_charts import learning

SPECIAL: dict[str, Callable[[Evidence], list[AnyChart]]] = {
    "C1": chain_charts.solved,
    "C2": chain_charts.errors,
    "C11": measured_charts.speeds,
    "C16": measured_charts.collisions,
    "C19": chain_charts.diffusions,
    "C20": measured_charts.one_sweep,
    "C21": measured_charts.coverage,
    "C22": measured_charts.whole_episodes,
}


def charts_for(question: Question, evidence: Evidence, slug: str, verdict: Verdict) -> list[AnyChart]:
    """Return the charts of a question that was run; names of charts about training begin with `slug`."""
    if question.id in SPECIAL:
        return SPECIAL[question.id](evidence)
    return learning(question, evidence, slug, verdict) if question.variants else []
