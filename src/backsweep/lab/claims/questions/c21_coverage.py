"""C21, "Does mixing keep every memory in play?"."""

from __future__ import annotations

from backsweep.lab.claims.measured_rules import FullCoverage
from backsweep.lab.claims.question import Question, Study
from backsweep.lab.seeds import reporting, tuning

QUESTION = Question(
    id="C21",
    title="Does mixing keep every memory in play?",
    question=(
        "A sweep never reaches states from which no ending can be reached. Does mixing in a share of another sampler "
        "make sure that everything stored keeps being used?"
    ),
    claim=("Batch mixing guarantees that every stored transition keeps being updated."),
    metric=(
        "Batches of 64 until every stored transition has been drawn at least once; transitions not drawn within as "
        "many batches as leave a uniform draw a chance of one in a million to miss one (5,000 transitions stored)."
    ),
    decided_by=(
        "Shares of 0.1 and 0.5, from PER (with all errors gone to nothing, its hardest case) and from uniform "
        "sampling. Reproduced if nothing is left undrawn on any seed with mixing, and something is without."
    ),
    rule=FullCoverage(),
    scales={
        "smoke": Study("coverage", tuning(1), {"steps": 1_000}),
        "laptop": Study("coverage", reporting(5)),
        "paper": Study("coverage", reporting(5)),
    },
)
