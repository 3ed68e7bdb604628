"""C23, "Does it work off the grid?"."""

from __future__ import annotations

from backsweep.experiments.question import Question
from backsweep.experiments.questions.shared import TER, UER, grids
from backsweep.experiments.rules import Alike

_SMALL = {"convolutions": (), "linear": (32,)}

QUESTION = Question(
    id="C23",
    title="Does it work off the grid?",
    question=("LunarLander's states are real numbers. Does TER work there, and does merging near states help?"),
    claim=("Non-grid tasks work (LunarLander); near states can be merged by distance."),
    metric=("Mean return at the end; paired seeds."),
    decided_by=(
        "Reproduced if TER is not behind UER: their difference lies within 20 points of return, or TER is ahead; here "
        "by the rule for likeness with a margin of 20."
    ),
    rule=Alike(("ter", "uer"), (TER, UER), ("lunarlander",), margin=20.0),
    variants=(TER, UER),
    scales=grids(("lunarlander",), (TER, UER), smoke_options=_SMALL),
    missing=("Merging near states needs the Quantized encoder, which the trainer does not offer as an option yet."),
)
