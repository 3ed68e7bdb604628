"""C20, "Is a reverse sweep the best order when states can be revisited?"."""

from __future__ import annotations

from backsweep.lab.claims.measured_rules import OptimalOrder
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import study_scales

QUESTION = Question(
    id="C20",
    title="Is a reverse sweep the best order when states can be revisited?",
    question=(
        "With cycles there is no obvious order of backups. If no step has a positive reward, is a sweep backwards from "
        "the terminal states still the best order?"
    ),
    claim=(
        "In cyclic MDPs with non-positive rewards off the terminal transitions, reverse BFS from the terminal states "
        "recovers the optimal backup order."
    ),
    metric=(
        "Random deterministic graphs with cycles; every edge backed up once in the sweep's order, values starting "
        "very low; a graph is solved if every state that can reach an ending then has its exact optimal value."
    ),
    decided_by=(
        "2,000 graphs each of three kinds with non-positive rewards: equal costs and equal prizes; equal costs and "
        "different prizes; different costs. Reproduced if all are solved, not reproduced if one is not. Graphs with "
        "positive rewards on the way are also shown."
    ),
    rule=OptimalOrder(),
    scales=study_scales("sweep-order", 5, {"graphs": 5}),
)
