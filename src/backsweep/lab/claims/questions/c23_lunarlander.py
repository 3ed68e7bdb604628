"""C23: continuous states."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import grids, variant
from backsweep.lab.claims.rules import NotBehind, Together

_TASKS = ("lunarlander",)
# Cells so wide that about half of the steps of a random policy lead to one seen before (15,064 cells in 30,000 steps of
# seed 10,000, a seed for tuning); with the projection none does.
_MERGED = variant("ter", "ter, near states merged", encoder="quantized", cell=(0.1,))
_VARIANTS = (variant("uer", encoder="projection"), variant("ter", encoder="projection"), _MERGED)
_MARGIN = 20.0
_SMALL = {"convolutions": (), "linear": (32,)}

QUESTION = Question(
    id="C23",
    title="Does it work with continuous states?",
    question=("LunarLander's states are real numbers. Does TER work there, and does merging near states help?"),
    claim=("Non-grid tasks work (LunarLander); near states can be merged by distance."),
    metric=("Mean return at the end; paired seeds."),
    decided_by=(
        "Reproduced if TER is not behind UER, and TER with near states merged is behind neither: every interval of a "
        "difference lies above -20 points of return. Not reproduced if one lies wholly below."
    ),
    rule=Together(
        (
            NotBehind(("ter", "uer"), _VARIANTS, _TASKS, _MARGIN),
            NotBehind((_MERGED.label, "uer", "ter"), _VARIANTS, _TASKS, _MARGIN),
        )
    ),
    scales=grids(_TASKS, _VARIANTS, smoke_options=_SMALL),
)
