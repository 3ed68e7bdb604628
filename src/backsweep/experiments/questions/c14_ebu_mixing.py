"""C14, "Does mixing help EBU?"."""

from __future__ import annotations

from backsweep.experiments.question import Question, Variant
from backsweep.experiments.questions.shared import EBU, MINIGRID, SCORES, grids
from backsweep.experiments.rules import Alike

_VARIANTS = (EBU, Variant("ebu-mixed", "ebu-mixed"))

QUESTION = Question(
    id="C14",
    title="Does mixing help EBU?",
    question=("TER mixes in part of each batch from PER. Would EBU gain from the same?"),
    claim=("Batch mixing does not help EBU."),
    metric=SCORES,
    decided_by=(
        "Reproduced if EBU with mixing is not ahead of EBU: the upper end of the interval of the difference is below "
        "0.05. Here by the rule for likeness: reproduced if the difference lies within 0.05, not reproduced if it "
        "lies wholly outside."
    ),
    rule=Alike(("ebu", "ebu-mixed"), _VARIANTS, MINIGRID),
    variants=_VARIANTS,
    scales=grids(MINIGRID, _VARIANTS),
)
