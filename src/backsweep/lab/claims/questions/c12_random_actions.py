"""C12: random actions."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, NAMES, SCORES, SLIPPERY, grids, variant
from backsweep.lab.claims.rules import Better

_VARIANTS = tuple(variant(name, **SLIPPERY) for name in (*NAMES, "ter"))

QUESTION = Question(
    id="C12",
    title="Does the lead survive random actions?",
    question=("If one action in ten is replaced by a random one, is TER still ahead?"),
    claim=("10% random actions do not remove the advantage (LavaCrossing-Hard)."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER is ahead of every other method, at the end and in area, with Holm-corrected p of at most "
        "0.05; not reproduced if it is behind one as clearly, or if a difference is shown to be smaller than 0.05; "
        "inconclusive otherwise or with fewer than 3 paired seeds."
    ),
    rule=Better("ter", NAMES, _VARIANTS, (LAVA_HARD,)),
    scales=grids((LAVA_HARD,), _VARIANTS),
)
