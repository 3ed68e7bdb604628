"""C14, "Does mixing help EBU?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import EBU, MINIGRID, SCORES, grids, variant
from backsweep.lab.claims.rules import NotBehind

_VARIANTS = (EBU, variant("ebu-mixed"))

QUESTION = Question(
    id="C14",
    title="Does mixing help EBU?",
    question=("TER mixes in part of each batch from PER. Would EBU gain from the same?"),
    claim=("Batch mixing does not help EBU."),
    metric=SCORES,
    decided_by=(
        "Reproduced if EBU is not behind EBU with mixing at the end: the interval of EBU minus EBU-mixed lies above "
        "-0.05; not reproduced if it lies wholly below."
    ),
    rule=NotBehind(("ebu", "ebu-mixed"), _VARIANTS, MINIGRID),
    scales=grids(MINIGRID, _VARIANTS),
)
