"""G1, "Who learns soonest?"."""

from __future__ import annotations

from backsweep.lab.claims.goal_rules import Soonest
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.ours import on_the_grid, sizes
from backsweep.lab.claims.questions.shared import MINIGRID

_RIVALS = ("ter", "ceer", "graph-backup")
_METHODS = ("graph", "uer", "per", "ter", "ter-shuffled", "ebu", "n-step", "ceer", "graph-backup", "erlam", "gap")
_VARIANTS = tuple(on_the_grid(method) for method in _METHODS)

QUESTION = Question(
    id="G1",
    title="Who learns soonest?",
    question=(
        "Seven small worlds with keys, doors, walls and lava, seen as pictures, a million steps, the same schedule and "
        "scaled rewards for all. After how many steps does each replay method solve nine episodes in ten?"
    ),
    claim=(
        "Graph values solve 95% of episodes on all seven tasks within a million steps, and need at most half of the "
        "steps of the best of TER, CEER and Graph Backup on at least five."
    ),
    metric=(
        "Steps to 90% of episodes: the first evaluation after which the exact share of episodes that reach the goal "
        "stays at 0.9 or above; Kaplan-Meier median over 10 seeds, runs that never get there right-censored. Also "
        "shown, by task and over tasks: that share at the end and as area under the curve, interquartile means with "
        "stratified bootstrap."
    ),
    decided_by=(
        "Holds if on each of the seven tasks graph's median seed solves 95% of episodes at some evaluation within "
        "1,000,000 steps, and if on at least five of them graph's median of the steps to 90% is at most half of the "
        "smallest median among ter, ceer and graph-backup. A rival whose median seed never gets there counts as "
        "needing at least its whole run: beyond half of that, the task is undecided. Does not hold if a task is "
        "missed, or if five cannot be reached. Medians decide, their intervals are shown; fewer than 3 "
        "paired seeds decide nothing. The other methods are also shown."
    ),
    rule=Soonest("graph", _RIVALS, _VARIANTS, MINIGRID),
    scales=sizes(MINIGRID, _VARIANTS),
    kind="graph values",
)
