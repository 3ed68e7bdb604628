"""The paper's claim about a world model: C17. DreamerV2 is not part of this project; its records are."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.graph_values import on_the_grid
from backsweep.lab.claims.questions.shared import MINIGRID
from backsweep.lab.claims.world_model_rules import AsHighAsWorldModel

RULE = AsHighAsWorldModel((on_the_grid("ter"), on_the_grid("graph")), MINIGRID)

C17 = Question(
    id="C17",
    title="TER against a world model",
    question="DreamerV2 learns a model of the world and practises in it. Does TER end as high with far fewer parts?",
    claim="TER matches DreamerV2 at convergence on 3 of 4 tasks with far fewer parts.",
    stated="as high on 3 of 4 tasks (curves)",
    metric=(
        "Normalised return at the last step at which TER and DreamerV2 were both evaluated; paired seeds, bootstrap "
        "over them. TER's is exact; DreamerV2's is that of 100 episodes of most likely actions, with 1% random ones. "
        "Also shown: area under the curve, episodes that reach the goal, steps until 90% do for good, and graph values."
    ),
    decided_by=(
        "With our settings, at the same number of environment steps. TER ends as high on a task if it is at most 0.05 "
        "lower (interval above -0.05), and not if the interval lies wholly below. A task is open with fewer than 3 "
        "paired seeds. It is also open with less than half of the paper's budget, unless every run of both has solved "
        "it for good (90% of episodes) by then. Reproduced if TER ends as high on three quarters of the tasks that "
        "were run, not reproduced if that cannot be reached, else inconclusive. Written before any run of DreamerV2."
    ),
    rule=RULE,
    scales={"smoke": None, "laptop": None, "paper": None},
    missing=(
        "DreamerV2 on two tasks or more, three seeds each, as far as the time allows, by python -m "
        "benchmarks.world_model, which needs sheeprl in an environment of its own (docs/experiments.md)."
    ),
)

QUESTIONS = (C17,)
