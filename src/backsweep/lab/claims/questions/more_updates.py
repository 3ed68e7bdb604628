"""G8: graph values with more updates a step, with our settings."""

from __future__ import annotations

from backsweep.lab.claims.groups import final_success, success_area
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.graph_values import on_the_grid, sizes
from backsweep.lab.claims.questions.shared import LAVA_HARD, SIMPLE_HARD
from backsweep.lab.claims.rules import Better
from backsweep.lab.seeds import reporting

_TASKS = ("minigrid/unlock", SIMPLE_HARD, LAVA_HARD)
_LINES = tuple(
    on_the_grid(method, f"{method} at {ratio:g}" if ratio != 0.5 else None, ratio=ratio)
    for method in ("graph", "ter")
    for ratio in (0.5, 1.0, 2.0)
)

G8 = Question(
    id="G8",
    title="What do more updates give?",
    question=(
        "Training makes one update every two steps. Where steps are costly and computing is not, do graph values learn "
        "from fewer steps with one or two updates a step?"
    ),
    claim="Graph values learn more from the same steps with two updates a step than with a half.",
    metric=(
        "Area under the curve of the exact share of episodes that reach the goal; interquartile mean over tasks and "
        "paired seeds, stratified bootstrap. The share at the end is measured too."
    ),
    decided_by=(
        "Holds if graph with two updates a step is ahead of graph with a half in area, with a p of at most 0.05; does "
        "not hold if it is behind as clearly, or if the difference is shown to be smaller than 0.05. One update a step "
        "and TER with all three are also shown. Written after a trial on a tuning seed (Unlock, cut short) and before "
        "its runs."
    ),
    rule=Better(
        "graph at 2",
        ("graph",),
        _LINES,
        _TASKS,
        (("area under success", success_area),),
        also=("graph at 1", "ter", "ter at 1", "ter at 2"),
        shown=(("success at the end", final_success),),
    ),
    scales=sizes(_TASKS, _LINES, seeds=reporting(5)),
    kind="graph values",
)

QUESTIONS = (G8,)
