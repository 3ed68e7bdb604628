"""C16, "Does the size of the projection matter?"."""

from __future__ import annotations

from backsweep.lab.claims.measured_rules import NoCollisions
from backsweep.lab.claims.question import Question, Study
from backsweep.lab.seeds import reporting, tuning

QUESTION = Question(
    id="C16",
    title="Does the size of the projection matter?",
    question=(
        "TER tells states apart by a short random fingerprint of the picture. How short may it be before two "
        "different states get the same one?"
    ),
    claim=("TER is insensitive to the projection's dimension d, down to 1."),
    metric=(
        "Pairs of different observations that share a key, among all states of all levels of the seven MiniGrid "
        "tasks, for d in {1, 2, 3, 8, 32} and five random matrices each."
    ),
    decided_by=(
        "With no collision at any d the graph, and so TER, is the same at each: reproduced. With collisions the "
        "enumeration alone decides nothing: inconclusive until runs at each d are there."
    ),
    rule=NoCollisions(),
    scales={
        "smoke": Study("collisions", tuning(1), {"tasks": ["minigrid/redbluedoors"], "dimensions": [1, 3]}),
        "laptop": Study("collisions", reporting(5)),
        "paper": Study("collisions", reporting(5)),
    },
    missing=("Training runs at each dimension."),
)
