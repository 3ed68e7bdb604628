"""C10, "Is it the stitching that helps?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, SCORES, SIMPLE_HARD, grids, variant
from backsweep.lab.claims.rules import Better

_TASKS = (LAVA_HARD, SIMPLE_HARD)
_VARIANTS = (
    variant("ter-single"),
    variant("ebu-notimeout", "ebu, beta 0, no timeouts", diffusion=0.0),
    variant("ter"),
    variant("ter-nostitch"),
    variant("ter-shuffled"),
)

QUESTION = Question(
    id="C10",
    title="Is it the stitching that helps?",
    question=(
        "TER differs from EBU by following paths across episodes, and in its targets. Take away its other advantages: "
        "does crossing between episodes still help? And does the order matter, or only which transitions are chosen?"
    ),
    claim=(
        "TER with one root, one predecessor and no mixing beats EBU with beta 0 and without timeout episodes: "
        "stitching is what helps."
    ),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER-single is ahead of EBU-without-timeouts at beta 0, at the end and in area, with Holm-"
        "corrected p of at most 0.05; not reproduced if it is behind as clearly or the difference is shown to be "
        "smaller than 0.05. TER without stitching and TER-shuffled are also shown."
    ),
    rule=Better("ter-single", ("ebu, beta 0, no timeouts",), _VARIANTS, _TASKS),
    scales=grids(_TASKS, _VARIANTS),
)
