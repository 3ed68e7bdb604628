"""The table of tasks: names, observations, options and default training settings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from backsweep.tasks.atari import AtariOptions
from backsweep.tasks.chain.options import ChainOptions
from backsweep.tasks.lunarlander import LunarLanderOptions
from backsweep.tasks.minatar import GAMES as MINATAR_GAMES
from backsweep.tasks.minatar import MinAtarOptions
from backsweep.tasks.minigrid.options import MiniGridOptions
from backsweep.tasks.options import build_options
from backsweep.tasks.settings import (
    ATARI_SETTINGS,
    CHAIN_SETTINGS,
    LUNARLANDER_SETTINGS,
    MINATAR_SETTINGS,
    TrainingSettings,
    minigrid_settings,
    sokoban_settings,
)
from backsweep.tasks.sokoban.options import SokobanOptions

MILLION = 1_000_000
FOREIGN_FAMILIES = ("atari", "lunarlander", "minatar")
"""Families that are other packages' environments."""


class TaskOptions(Protocol):
    """The properties that every family's options have."""

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """The actions, in order."""

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """The worst and the best return of an episode, None without known bounds."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One named task."""

    id: str
    """Its name, such as minigrid/doorkey."""
    gymnasium_id: str
    """Its name for `gymnasium.make`."""
    family: str
    """nchain, minigrid, sokoban, atari, minatar or lunarlander."""
    summary: str
    """A short description."""
    observation: str
    """The observation's form, in words."""
    options_class: type[Any]
    """The options of its family."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The options that define this task, such as its size."""
    training: TrainingSettings
    """What the trainer uses by default."""

    def options(self, **given: Any) -> Any:
        """Return the task's options, with `given` overriding its defaults."""
        return build_options(self.options_class, self.id, dict(self.defaults), given)

    def options_under(self, settings: str) -> dict[str, Any]:
        """Return the options that some settings change: those of the "released" code differ from the "paper"."""
        if settings != "released" or self.family != "minigrid":
            return {}
        doors = {"wrong_door": "released"} if self.defaults.get("level") == "redbluedoors" else {}  # D10
        return {"actions": "released", **doors}  # D9

    @property
    def action_names(self) -> tuple[str, ...]:
        """The actions under the default options."""
        options: TaskOptions = self.options()
        return options.action_names

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated, under the default options."""
        options: TaskOptions = self.options()
        return options.step_limit

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """The worst and the best return of an episode under the default options."""
        options: TaskOptions = self.options()
        return options.return_bounds


def _chain(length: int) -> Task:
    return Task(
        id=f"nchain-{length}",
        gymnasium_id=f"backsweep/NChain-{length}-v0",
        family="nchain",
        summary=f"a corridor of {length} states, reward at the far end",
        observation="state number",
        options_class=ChainOptions,
        defaults={"length": length},
        training=CHAIN_SETTINGS,
    )


def _minigrid(name: str, title: str, summary: str, budget: int, **defaults: Any) -> Task:
    return Task(
        id=f"minigrid/{name}",
        gymnasium_id=f"backsweep/{title}-v0",
        family="minigrid",
        summary=summary,
        observation="RGB 40x40, the whole grid from above",
        options_class=MiniGridOptions,
        defaults=defaults,
        training=minigrid_settings(budget),
    )


# Environment steps in the released scripts; other sizes get the largest of these.
SOKOBAN_BUDGETS = {
    (5, 5, 1): 1 * MILLION,
    (5, 5, 2): 1 * MILLION,
    (6, 6, 1): 1 * MILLION,
    (6, 6, 2): 5 * MILLION,
    (6, 6, 3): 10 * MILLION,
    (7, 7, 1): 3 * MILLION,
    (7, 7, 2): 5 * MILLION,
}


def _sokoban(height: int, width: int, boxes: int) -> Task:
    name = f"{height}x{width}-{boxes}"
    return Task(
        id=f"sokoban/{name}",
        gymnasium_id=f"backsweep/Sokoban-{name}-v0",
        family="sokoban",
        summary=f"push {boxes} box{'es' if boxes > 1 else ''} onto targets in a room of {height}x{width}",
        observation="RGB 84x84, the whole room from above",
        options_class=SokobanOptions,
        defaults={"height": height, "width": width, "boxes": boxes},
        training=sokoban_settings(SOKOBAN_BUDGETS.get((height, width, boxes), 10 * MILLION)),
    )


def _atari(name: str) -> Task:
    return Task(
        id=f"atari/{name}",
        gymnasium_id=f"backsweep/{name.capitalize()}-v0",
        family="atari",
        summary=f"Atari's {name.capitalize()}",
        observation="4 grey frames of 84x84",
        options_class=AtariOptions,
        defaults={"game": name},
        training=ATARI_SETTINGS,
    )


def _minatar(game: str) -> Task:
    title = game.title().replace("_", "")
    return Task(
        id=f"minatar/{game.replace('_', '-')}",
        gymnasium_id=f"backsweep/MinAtar{title}-v0",
        family="minatar",
        summary=f"MinAtar's {title}",
        observation="10x10, a channel for each kind of thing",
        options_class=MinAtarOptions,
        defaults={"game": game},
        training=MINATAR_SETTINGS,
    )


_TASKS = (
    _chain(20),
    _minigrid(
        "doorkey", "DoorKey", "fetch the key, open the door, reach the goal", 6 * MILLION, level="doorkey", size=6
    ),
    _minigrid("unlock", "Unlock", "fetch the key and open the door", 3 * MILLION, level="unlock", size=6),
    _minigrid(
        "redbluedoors", "RedBlueDoors", "open the red door, then the blue", 3 * MILLION, level="redbluedoors", size=6
    ),
    *(
        _minigrid(
            f"{kind}crossing-{grade}",
            f"{kind.capitalize()}Crossing{grade.capitalize()}",
            f"reach the goal through {obstacle}",
            3 * MILLION,
            level=f"{kind}crossing",
            size=9,
            crossings=crossings,
        )
        for kind, grade, crossings, obstacle in (
            ("simple", "easy", 1, "one wall"),
            ("simple", "hard", 2, "two walls"),
            ("lava", "easy", 1, "one river of lava"),
            ("lava", "hard", 2, "two rivers of lava"),
        )
    ),
    *(_sokoban(*room) for room in SOKOBAN_BUDGETS),
    *(_atari(game) for game in ("pong", "freeway", "kangaroo", "venture")),
    *(_minatar(game) for game in MINATAR_GAMES),
    Task(
        id="lunarlander",
        gymnasium_id="backsweep/LunarLander-v0",
        family="lunarlander",
        summary="land between two flags",
        observation="8 floats",
        options_class=LunarLanderOptions,
        training=LUNARLANDER_SETTINGS,
    ),
)
TASKS: Mapping[str, Task] = MappingProxyType({task.id: task for task in _TASKS})
"""The named tasks by id."""

_CHAIN_ID = re.compile(r"nchain-(\d{1,9})")
_SOKOBAN_ID = re.compile(r"sokoban/(\d{1,4})x(\d{1,4})-(\d{1,3})")


def find_task(task: str | Task) -> Task:
    """Return the task with an id: one of `TASKS`, or a chain or Sokoban room of any size.

    Examples
    --------
    >>> find_task("nchain-50").step_limit
    25000
    >>> find_task("sokoban/5x5-1").return_bounds
    (-12.0, 10.9)
    """
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        raise TypeError(f"task must be a task id, got {type(task).__name__}")
    if task in TASKS:
        return TASKS[task]
    if match := _CHAIN_ID.fullmatch(task):
        found = _chain(int(match[1]))
    elif match := _SOKOBAN_ID.fullmatch(task):
        found = _sokoban(*map(int, match.groups()))
    else:
        near = _nearest_id(task)
        hint = f"did you mean {near!r}?" if near else f"known tasks are {', '.join(TASKS)}"
        raise ValueError(f"unknown task {task!r}; {hint}")
    found.options()  # raises for impossible sizes
    return found


def _nearest_id(wrong: str) -> str | None:
    """Return the known id most similar to `wrong`, None if none is similar."""
    likeness = {known: difflib.SequenceMatcher(None, wrong.lower(), known).ratio() for known in TASKS}
    best = max(likeness, key=lambda known: likeness[known])
    return best if likeness[best] >= 0.4 else None
