"""C17: TER against a world model."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import MINIGRID, SCORES, SOKOBAN, TER, variant
from backsweep.lab.claims.rules import Alike

_VARIANTS = (TER, variant("dreamer"))

QUESTION = Question(
    id="C17",
    title="TER against a world model",
    question=("DreamerV2 learns a model of the world and practises in it. Does TER end as high with far fewer parts?"),
    claim=("TER matches DreamerV2 at convergence on 3 of 4 tasks with far fewer parts."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER's and DreamerV2's final scores differ by no more than 0.05 on at least 3 of 4 tasks; not "
        "run without a DreamerV2 on the same tasks."
    ),
    rule=Alike(("ter", "dreamer"), _VARIANTS, (*MINIGRID, *SOKOBAN)),
    scales={"smoke": None, "laptop": None, "paper": None},
    missing=("This project has no DreamerV2; TER's runs are those of C3 and C4."),
)
