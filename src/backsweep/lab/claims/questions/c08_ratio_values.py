"""C8, "Do more updates inflate values?"."""

from __future__ import annotations

from backsweep.lab.claims.groups import overestimate
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, grids, variant
from backsweep.lab.claims.rules import Better, Together

_TASKS = (LAVA_HARD, "minigrid/unlock", "sokoban/6x6-2", "sokoban/6x6-3")
_VARIANTS = tuple(
    variant(name, f"{name} at {ratio:g}", ratio=ratio) for name in ("uer", "per") for ratio in (0.25, 1.0, 2.0)
)
_MEASURES = (("over-estimate", overestimate),)

QUESTION = Question(
    id="C8",
    title="Do more updates inflate values?",
    question=("With more updates per step, do networks begin to over-estimate returns?"),
    claim=("A higher replay ratio over-estimates."),
    metric=("Value at the first state minus the discounted return that follows, at the end of the run."),
    decided_by=(
        "Reproduced if UER at ratio 2 over-estimates more than at 0.25, and PER likewise, with Holm-corrected p of at "
        "most 0.05; not reproduced if less as clearly."
    ),
    rule=Together(
        (
            Better("uer at 2", ("uer at 0.25",), _VARIANTS, _TASKS, _MEASURES),
            Better("per at 2", ("per at 0.25",), _VARIANTS, _TASKS, _MEASURES),
        )
    ),
    scales=grids(_TASKS, _VARIANTS, laptop_tasks=_TASKS[:2]),
)
