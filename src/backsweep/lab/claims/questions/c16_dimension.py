"""C16, "Does the size of the projection matter?"."""

from __future__ import annotations

from backsweep.lab.claims.dimension_rule import SameAtEveryDimension
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import SIMPLE_HARD, grids, study_scales, variant

# TER learns DoorKey soonest with our settings. It learns SimpleCrossing-Hard with everyone's, and two states share a
# key of one number there.
_TASKS = ("minigrid/doorkey", SIMPLE_HARD)
_VARIANTS = tuple(variant("ter", f"ter, d = {dimension}", dimension=dimension) for dimension in (1, 2, 3, 8))
_TRAINED = grids(_TASKS, _VARIANTS)

QUESTION = Question(
    id="C16",
    title="Does the size of the projection matter?",
    question=(
        "TER tells states apart by a short random fingerprint of the picture. How short may it be before two "
        "different states get the same one, and does it learn less then?"
    ),
    claim=("TER is insensitive to the projection's dimension d, down to 1."),
    metric=(
        "Pairs of different observations that share a key, among all states of all levels of the seven MiniGrid "
        "tasks, for d in {1, 2, 3, 8, 32} and five random matrices each. TER's exact normalised return at the end on "
        "DoorKey and SimpleCrossing-Hard, for d in {1, 2, 3, 8}, paired seeds."
    ),
    decided_by=(
        "Without a collision at any d the graph, and so TER, is the same at each: reproduced. With collisions the runs "
        "decide: reproduced if no two of the dimensions differ by more than 0.05 in the final score (every pair's "
        "corrected interval within it), not reproduced if one pair's lies wholly outside, else inconclusive; fewer "
        "than 3 paired seeds decide nothing."
    ),
    rule=SameAtEveryDimension(_VARIANTS, _TASKS),
    scales=study_scales("collisions", 5, {"tasks": ["minigrid/redbluedoors"], "dimensions": [1, 3]}),
    trains={scale: grid for scale, grid in _TRAINED.items() if grid is not None},
)
