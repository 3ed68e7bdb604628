"""C5, "Sokoban: do EBU and DisCor do harm?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import DISCOR, EBU, SCORES, SOKOBAN, UER, grids
from backsweep.lab.claims.rules import Better

QUESTION = Question(
    id="C5",
    title="Sokoban: do EBU and DisCor do harm?",
    question=("On Sokoban, are EBU and DisCor worse than drawing experience at random?"),
    claim=("EBU and DisCor do worse than UER on Sokoban."),
    metric=SCORES,
    decided_by=(
        "Reproduced if UER is ahead of both, at the end and in area, with Holm-corrected p of at most 0.05; not "
        "reproduced if it is behind as clearly or the difference is shown to be smaller than 0.05. EBU and DisCor "
        "are the corrected ones; the settings `released` have the original ones."
    ),
    rule=Better("uer", ("ebu", "discor"), (UER, EBU, DISCOR), SOKOBAN),
    scales=grids(SOKOBAN, (UER, EBU, DISCOR), laptop_tasks=SOKOBAN[:3]),
)
