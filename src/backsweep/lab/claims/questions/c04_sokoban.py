"""C4, "Sokoban: who learns best?"."""

from __future__ import annotations

from backsweep.lab.claims.lead_rules import GrowsWithSize
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import ALL, NAMES, SCORES, SOKOBAN, grids
from backsweep.lab.claims.rules import Better, Together

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
        "Two halves, both needed. TER is ahead of every other method, at the end and in area, with Holm-corrected p of "
        "at most 0.05; not so if it is behind one as clearly, or if a difference is shown to be smaller than 0.05. And "
        "its lead in area over the mean of the others grows with the number of ways to place the player and the boxes: "
        "the interval of the rank correlation over tasks lies above 0, and its exact p-value is at most 0.05; not so "
        "if the interval lies below 0. Inconclusive otherwise, with fewer than 3 paired seeds, or with fewer than 4 "
        "tasks. The density of the measured graphs is also shown."
    ),
    rule=Together((Better("ter", NAMES, ALL, SOKOBAN), GrowsWithSize("ter", NAMES, ALL, SOKOBAN))),
    scales=grids(SOKOBAN, ALL, laptop_tasks=SOKOBAN[:4]),
)
