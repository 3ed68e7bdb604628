"""G2, "What does each part of graph values give?"."""

from __future__ import annotations

from backsweep.lab.claims.groups import final_success, success_area
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.ours import on_the_grid, sizes
from backsweep.lab.claims.questions.shared import MINIGRID
from backsweep.lab.claims.rules import Better

_LESS = (
    on_the_grid("graph", "without scale", reward_scale=1.0),
    on_the_grid("graph", "without gap", gap=1.0),
    on_the_grid("graph", "untried never", untried="never"),
    on_the_grid("graph-uniform", "without priorities"),
    on_the_grid("per", "without graph"),
)
_SWEEP = on_the_grid("graph", "with half a sweep", eta=0.5)
_VARIANTS = (on_the_grid("graph"), *_LESS, _SWEEP)

QUESTION = Question(
    id="G2",
    title="What does each part of graph values give?",
    question=(
        "The method has five parts: scaled rewards, a wider gap between actions, the network's value of actions that "
        "were never tried, rows drawn by priority, and values planned on the graph. Take away one at a time: what is "
        "lost? And would it help to draw half of the rows by sweeps?"
    ),
    claim="Every part helps: without it, less is learned.",
    metric=(
        "Area under the curve of the exact share of episodes that reach the goal; interquartile mean over tasks and "
        "paired seeds, stratified bootstrap. The share at the end is measured too, where several may come to 1."
    ),
    decided_by=(
        "Holds if graph is ahead of each of the five in area, with Holm-corrected p of at most 0.05; does not hold if "
        "it is behind one as clearly, or if a difference is shown to be smaller than 0.05. Each part has its own line; "
        "sweeps and single tasks are also shown and decide nothing."
    ),
    rule=Better(
        "graph",
        tuple(variant.label for variant in _LESS),
        _VARIANTS,
        MINIGRID,
        (("area under success", success_area),),
        (_SWEEP.label,),
        shown=(("success at the end", final_success),),
    ),
    scales=sizes(MINIGRID, _VARIANTS),
    kind="graph values",
)
