"""C21: whether mixing draws every stored transition."""

from __future__ import annotations

from backsweep.lab.claims.measured_rules import FullCoverage
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import study_scales

QUESTION = Question(
    id="C21",
    title="Does mixing draw every stored transition?",
    question=(
        "A sweep never reaches states from which no terminal state can be reached. Does a share of another sampler "
        "ensure that every transition is still drawn?"
    ),
    claim=("Batch mixing guarantees that every stored transition keeps being updated."),
    metric=(
        "Batches of 64 until every stored transition has been drawn at least once; transitions not drawn within as "
        "many batches as uniform sampling needs to draw all 5,000 with a probability of 1 - 1e-6."
    ),
    decided_by=(
        "Shares of 0.1 and 0.5, from PER (with all errors near 0, its worst case) and from uniform sampling. "
        "Reproduced if with mixing every transition is drawn on every seed, and without mixing some are not."
    ),
    rule=FullCoverage(),
    scales=study_scales("coverage", 5, {"steps": 1_000}),
)
