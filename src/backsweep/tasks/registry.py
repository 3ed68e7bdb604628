"""The table of tasks: names, observations, options and default training settings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import gymnasium

from backsweep.tasks import settings
from backsweep.tasks.atari import AtariOptions, make_atari
from backsweep.tasks.chain import ChainLanes, ChainOptions
from backsweep.tasks.chain.lanes import ChainStates
from backsweep.tasks.lanes import Lanes
from backsweep.tasks.lunarlander import LunarLanderOptions, make_lunarlander
from backsweep.tasks.minatar import GAMES as MINATAR_GAMES
from backsweep.tasks.minatar import MinAtarOptions, make_minatar
from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions
from backsweep.tasks.minigrid.enumeration import MiniGridStates
from backsweep.tasks.options import TaskOptions, build_options
from backsweep.tasks.settings import TrainingSettings
from backsweep.tasks.sokoban import SokobanLanes, SokobanOptions

MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Family:
    """A kind of task: its options, and what can be done with its tasks."""

    options: type[TaskOptions]
    """The class of its options, from which everything below is made."""
    observation: str
    """The observation's form, in words."""
    lanes: Callable[[Any, int], Lanes] | None = None
    """Makes lanes of one of the project's own tasks; None for environments of other packages."""
    env: Callable[[Any, str | None], gymnasium.Env[Any, Any]] | None = None
    """Makes one environment of another package, for a render mode."""
    states: Callable[[Any], ChainStates | MiniGridStates] | None = None
    """Lists all states; None if they are too many."""
    draws_levels: bool = False
    """Whether episodes start on different levels."""


FAMILIES = {
    "nchain": Family(options=ChainOptions, observation="state number", lanes=ChainLanes, states=ChainStates),
    "minigrid": Family(
        options=MiniGridOptions,
        observation="RGB 40x40, the whole grid from above",
        lanes=MiniGridLanes,
        states=MiniGridStates,
        draws_levels=True,
    ),
    "sokoban": Family(
        options=SokobanOptions,
        observation="RGB 84x84, the whole room from above",
        lanes=SokobanLanes,
        draws_levels=True,
    ),
    "atari": Family(options=AtariOptions, observation="4 grey frames of 84x84", env=make_atari),
    "minatar": Family(options=MinAtarOptions, observation="10x10, a channel for each kind of thing", env=make_minatar),
    "lunarlander": Family(options=LunarLanderOptions, observation="8 floats", env=make_lunarlander),
}
OWN_FAMILIES = tuple(name for name, family in FAMILIES.items() if family.lanes is not None)
"""Families that this project implements itself."""


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
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The options that define this task, such as its size."""
    training: TrainingSettings
    """What the trainer uses by default."""

    @property
    def kind(self) -> Family:
        """What its family has and can do."""
        return FAMILIES[self.family]

    @property
    def is_own(self) -> bool:
        """Whether this project implements it, so that many copies are cheap."""
        return self.kind.lanes is not None

    @property
    def is_exact(self) -> bool:
        """Whether all of its states can be listed."""
        return self.kind.states is not None

    @property
    def observation(self) -> str:
        """The observation's form, in words."""
        return self.kind.observation

    def options(self, **given: Any) -> TaskOptions:
        """Return the task's options, with `given` overriding its defaults."""
        return build_options(self.kind.options, self.id, dict(self.defaults), given)

    def options_under(self, settings: str) -> dict[str, Any]:
        """Return the options that some settings change: those of the "released" code differ from the "paper"."""
        if settings != "released" or self.family != "minigrid":
            return {}
        doors = {"wrong_door": "released"} if self.defaults.get("level") == "redbluedoors" else {}  # D10
        return {"actions": "released", **doors}  # D9

    @property
    def action_names(self) -> tuple[str, ...]:
        """The actions under the default options."""
        return self.options().action_names

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated, under the default options."""
        return self.options().step_limit

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """The worst and the best return of an episode under the default options."""
        return self.options().return_bounds


def _task(family: str, name: str, title: str, summary: str, training: TrainingSettings, **defaults: Any) -> Task:
    return Task(
        id=name,
        gymnasium_id=f"backsweep/{title}-v0",
        family=family,
        summary=summary,
        training=training,
        defaults=defaults,
    )


def _chain(length: int) -> Task:
    summary = f"a corridor of {length} states, reward at the far end"
    return _task("nchain", f"nchain-{length}", f"NChain-{length}", summary, settings.CHAIN_SETTINGS, length=length)


def _minigrid(name: str, title: str, summary: str, budget: int, **defaults: Any) -> Task:
    return _task("minigrid", f"minigrid/{name}", title, summary, settings.minigrid_settings(budget), **defaults)


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
    summary = f"push {boxes} box{'es' if boxes > 1 else ''} onto targets in a room of {height}x{width}"
    training = settings.sokoban_settings(SOKOBAN_BUDGETS.get((height, width, boxes), 10 * MILLION))
    size = {"height": height, "width": width, "boxes": boxes}
    return _task("sokoban", f"sokoban/{name}", f"Sokoban-{name}", summary, training, **size)


def _atari(game: str) -> Task:
    title = game.capitalize()
    return _task("atari", f"atari/{game}", title, f"Atari's {title}", settings.ATARI_SETTINGS, game=game)


def _minatar(game: str) -> Task:
    title, name = game.title().replace("_", ""), f"minatar/{game.replace('_', '-')}"
    return _task("minatar", name, f"MinAtar{title}", f"MinAtar's {title}", settings.MINATAR_SETTINGS, game=game)


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
    _task("lunarlander", "lunarlander", "LunarLander", "land between two flags", settings.LUNARLANDER_SETTINGS),
)
TASKS: Mapping[str, Task] = MappingProxyType({task.id: task for task in _TASKS})
"""The named tasks by id."""

LIKE = 0.65
"""How similar an id must be to be suggested, from 0 to 1."""
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
        raise ValueError(f"unknown task {task!r}{_hint(task)}")
    found.options()  # raises for impossible sizes
    return found


def _hint(wrong: str) -> str:
    """Return what an unknown id may stand for: a task, or an environment of Gymnasium."""
    if wrong in gymnasium.registry:
        return ": it is a Gymnasium id, which gymnasium.make takes"
    newest = {_plain(known): known for known in gymnasium.registry if not known.startswith("backsweep/")}
    others = sorted(newest.values(), key=lambda known: "/" in known)
    likeness = {known: _likeness(wrong, known) for known in (*TASKS, *others)}
    best = max(likeness, key=lambda known: likeness[known])
    if likeness[best] < LIKE:
        return f"; known tasks are {', '.join(TASKS)}"
    return f"; did you mean {best!r}?" if best in TASKS else f"; did you mean the Gymnasium id {best!r}?"


def _plain(known: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", known)


def _likeness(wrong: str, known: str) -> float:
    """Return how similar an id is to `wrong`, from 0 to 1, with and without its version and what is before a slash."""
    forms = {known, _plain(known), _plain(known).rpartition("/")[2]}
    return max(difflib.SequenceMatcher(None, wrong.lower(), form.lower()).ratio() for form in forms)
