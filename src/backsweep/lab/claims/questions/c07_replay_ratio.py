"""C7, "Can the others catch up by updating more often?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, NAMES, SCORES, grids, variant
from backsweep.lab.claims.rules import Better

_TASKS = ("minigrid/unlock", "sokoban/6x6-2", "sokoban/6x6-3")
_RATIOS = (0.25, 1.0, 2.0)
_VARIANTS = tuple(variant(name, f"{name} at {ratio:g}", ratio=ratio) for name in (*NAMES, "ter") for ratio in _RATIOS)
_LOSERS = tuple(f"{name} at 2" for name in NAMES)

QUESTION = Question(
    id="C7",
    title="Can the others catch up by updating more often?",
    question=(
        "TER may only be quicker per update. If the others make four or eight times as many updates, do they close "
        "the gap?"
    ),
    claim=("Replay ratios 1 and 2 do not close the gap for the baselines, except on LavaCrossing-Hard."),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER at ratio 0.25 is ahead of every baseline at ratio 2 on Unlock and the two Sokoban tasks, "
        "with Holm-corrected p of at most 0.05; not reproduced if it is behind one as clearly or a difference is "
        "shown to be smaller than 0.05. TER at every ratio is also shown."
    ),
    rule=Better("ter at 0.25", _LOSERS, _VARIANTS, _TASKS),
    scales=grids((*_TASKS, LAVA_HARD), _VARIANTS, laptop_tasks=(_TASKS[0], LAVA_HARD)),
)
