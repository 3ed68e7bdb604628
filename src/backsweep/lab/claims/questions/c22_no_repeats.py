"""C22: states that never repeat."""

from __future__ import annotations

from backsweep.lab.claims.measured_rules import LikeEbu
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import study_scales

QUESTION = Question(
    id="C22",
    title="What if no state ever repeats?",
    question=(
        "Without repeated states the graph falls apart into single episodes. Is TER's order then the same as EBU's?"
    ),
    claim=("When states never repeat, TER degenerates to EBU's order."),
    metric=(
        "Stretches of sampled rows that are exactly one episode from its last step to its first, on streams without "
        "repeats; also how often LunarLander's states repeat."
    ),
    decided_by=(
        "Reproduced if every stretch of TER's sweep with its roots one by one is such an episode, as EBU's are; not "
        "reproduced if one is not."
    ),
    rule=LikeEbu(),
    scales=study_scales("no-repeats", 5, {"lander_steps": 300}),
)
