"""C6, "Sokoban: whose values are too high?"."""

from __future__ import annotations

from backsweep.lab.claims.groups import overestimate
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import BASELINES, SOKOBAN, grids
from backsweep.lab.claims.rules import Better

_MEASURES = (("over-estimate", overestimate),)

QUESTION = Question(
    id="C6",
    title="Sokoban: whose values are too high?",
    question=("On Sokoban, which methods over-estimate the return that they reach, and which under-estimate it?"),
    claim=("EBU over-estimates; UER, PER and DisCor under-estimate Q on Sokoban."),
    metric=(
        "Value at the first state minus the discounted return that follows, at the end of the run, by Monte-Carlo on "
        "the same episodes; and the mean Q on one fixed set of states."
    ),
    decided_by=(
        "Reproduced if EBU's over-estimate is larger than UER's, PER's and DisCor's with Holm-corrected p of at most "
        "0.05; not reproduced if it is smaller as clearly."
    ),
    rule=Better("ebu", ("uer", "per", "discor"), BASELINES, SOKOBAN, _MEASURES),
    scales=grids(SOKOBAN, BASELINES, laptop_tasks=SOKOBAN[:3]),
)
