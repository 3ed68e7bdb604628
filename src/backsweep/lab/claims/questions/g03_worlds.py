"""G3, "Other worlds: is graph a safe default?"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backsweep.lab.claims.goal_rules import NowhereBehind
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.ours import ours, sizes
from backsweep.lab.claims.questions.shared import LAVA_HARD, SIMPLE_HARD, SLIPPERY

_ENDLESS: dict[str, Any] = {"task_options": {"goals_terminate": False}, "exact": False}
_PLAIN: dict[str, Any] = {"task_options": {}}
_SOKOBAN = ("sokoban/5x5-1", "sokoban/6x6-1", "sokoban/7x7-2")
_SLIPPERY = ("minigrid/doorkey", "minigrid/lavacrossing-easy")
_WITHOUT_END = (SIMPLE_HARD, LAVA_HARD)
_CONTROL = {"lunarlander": 500_000, "CartPole-v1": 100_000}
_GAMES = {
    **{f"minatar/{game}": 500_000 for game in ("asterix", "breakout", "freeway", "seaquest", "space-invaders")},
    **{f"atari/{game}": 500_000 for game in ("pong", "freeway")},
}
_TASKS = (*_SOKOBAN, *_SLIPPERY, *_WITHOUT_END, *_CONTROL, *_GAMES)
_ON = {
    **dict.fromkeys((*_SOKOBAN, *_CONTROL, *_GAMES), _PLAIN),
    **dict.fromkeys(_SLIPPERY, SLIPPERY),
    **dict.fromkeys(_WITHOUT_END, _ENDLESS),
}
_TITLES = {
    **{task: f"{task} with 10% random actions" for task in _SLIPPERY},
    **{task: f"{task} with goals that do not end the episode" for task in _WITHOUT_END},
}
_OTHERS = ("uer", "n-step")
_VARIANTS = tuple(replace(ours(method), on=_ON) for method in ("graph", *_OTHERS))

QUESTION = Question(
    id="G3",
    title="Other worlds: is graph a safe default?",
    question=(
        "Sokoban, random actions, goals that do not end the episode, and control tasks and arcade games whose states "
        "seldom or never repeat: is anything lost by planning on the graph there?"
    ),
    claim=(
        "Graph values are at least as good as the better of uniform replay and n-step returns on every world, and "
        "ahead of both on some."
    ),
    metric=(
        "Score (normalised where its bounds are known, exact where the task's states can be listed, else the mean "
        "return) at the end and as area under the curve; world by world, paired seeds, bootstrap."
    ),
    decided_by=(
        "Sixteen worlds: Sokoban 5x5-1, 6x6-1 and 7x7-2; DoorKey and LavaCrossing-Easy with 10% random actions; "
        "SimpleCrossing-Hard and LavaCrossing-Hard with goals that do not end the episode; LunarLander (500,000 steps) "
        "and CartPole (100,000); MinAtar's five games and Atari's Pong and Freeway (500,000 steps each; these seven "
        "were added before any of their runs, when three of the other nine had been seen). Holds if graph is behind "
        "neither uer nor n-step on any of them, at the end or in area (a difference below 0 with a p of at most 0.05, "
        "Holm-corrected over worlds and opponents), and ahead of both as clearly on at least one. Does not hold if it "
        "is behind somewhere, or ahead nowhere once all were run."
    ),
    rule=NowhereBehind("graph", _OTHERS, _VARIANTS, _TASKS, _TITLES),
    scales=sizes(_TASKS, _VARIANTS, lengths={**_CONTROL, **_GAMES}, laptop_tasks=(_SLIPPERY[0], *_CONTROL)),
    kind="graph values",
)
