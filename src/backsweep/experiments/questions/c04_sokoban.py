"""C4, "Sokoban: who learns best?"."""

from __future__ import annotations

from backsweep.experiments.question import Question
from backsweep.experiments.questions.shared import ALL, NAMES, SCORES, SOKOBAN, grids
from backsweep.experiments.rules import Better

QUESTION = Question(
    id="C4",
    title="Sokoban: who learns best?",
    question=(
        "Pushing boxes onto targets, where a wrong push cannot be undone. Does TER get further, and more so on larger "
        "maps with more boxes?"
    ),
    claim=("TER beats the baselines on 7 Sokoban tasks, more so with larger maps and more boxes."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER is ahead of every other method, at the end and in area, with Holm-corrected p of at most "
        "0.05; not reproduced if it is behind one as clearly, or if a difference is shown to be smaller than 0.05; "
        "inconclusive otherwise or with fewer than 3 paired seeds."
    ),
    rule=Better("ter", NAMES, ALL, SOKOBAN),
    variants=ALL,
    scales=grids(SOKOBAN, ALL, laptop_tasks=SOKOBAN[:3]),
    missing=("The part about larger maps needs all seven tasks at the paper's budgets."),
)
