"""C3, "MiniGrid: who learns best?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import MINIGRID, NAMES, SCORES, WITH_SHUFFLED, grids
from backsweep.lab.claims.rules import Better

QUESTION = Question(
    id="C3",
    title="MiniGrid: who learns best?",
    question=(
        "Seven small worlds with keys, doors, walls and lava, seen as pictures. With the same memory and the same "
        "number of steps, does TER get further than the four other ways of replaying experience?"
    ),
    claim=("TER beats UER, PER, EBU and DisCor on 7 MiniGrid tasks."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER is ahead of every other method, at the end and in area, with Holm-corrected p of at most "
        "0.05; not reproduced if it is behind one as clearly, or if a difference is shown to be smaller than 0.05; "
        "inconclusive otherwise or with fewer than 3 paired seeds. The verdict is about the tasks that were run, and "
        "says which were not. Single tasks and TER with its order destroyed are also shown and decide nothing."
    ),
    rule=Better("ter", NAMES, WITH_SHUFFLED, MINIGRID, also=("ter-shuffled",)),
    scales=grids(MINIGRID, WITH_SHUFFLED),
)
