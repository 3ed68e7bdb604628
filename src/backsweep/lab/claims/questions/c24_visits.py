"""C24: Choosing predecessors by visits."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, NAMES, SCORES, SLIPPERY, grids, variant
from backsweep.lab.claims.rules import Better, NotBehind, Together

_VARIANTS = tuple(variant(name, **SLIPPERY) for name in (*NAMES, "ter", "ter-visits"))

QUESTION = Question(
    id="C24",
    title="Choosing predecessors by visits",
    question=(
        "With random actions some transitions into a state are rare accidents. Does it help to choose predecessors in "
        "proportion to how often they led there?"
    ),
    claim=("Visit-proportional predecessor choice handles stochastic transitions."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER by visits is no worse than TER with 10% random actions on LavaCrossing-Hard (the interval "
        "of the difference lies above -0.05), and ahead of every baseline with Holm-corrected p of at most 0.05; not "
        "reproduced if either is contradicted."
    ),
    rule=Together(
        (
            NotBehind(("ter-visits", "ter"), _VARIANTS, (LAVA_HARD,)),
            Better("ter-visits", NAMES, _VARIANTS, (LAVA_HARD,)),
        )
    ),
    scales=grids((LAVA_HARD,), _VARIANTS),
)
