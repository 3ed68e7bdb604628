"""C15, "Do timeouts hold EBU back?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import EBU, MINIGRID, SCORES, grids, variant
from backsweep.lab.claims.rules import Alike

_VARIANTS = (EBU, variant("ebu-notimeout"))

QUESTION = Question(
    id="C15",
    title="Do timeouts hold EBU back?",
    question=("EBU also walks back through episodes that just ran out of time. Is it better without them?"),
    claim=("Leaving timeout episodes out does not help EBU."),
    metric=SCORES,
    decided_by=(
        "Reproduced if EBU with and without timeout episodes differ by no more than 0.05 at the end (interval within "
        "it), not reproduced if the interval lies wholly outside."
    ),
    rule=Alike(("ebu", "ebu-notimeout"), _VARIANTS, MINIGRID),
    scales=grids(MINIGRID, _VARIANTS),
)
