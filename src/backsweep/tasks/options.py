"""What the options of all families share, and checks of options."""

from __future__ import annotations

import abc
import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from backsweep.checks import is_int

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class TaskOptions(abc.ABC):
    """Settings of a task, checked when made."""

    max_steps: int | None = None
    """Step limit."""
    random_action_chance: float = 0.0
    """Probability that a step's action is replaced by a uniformly random one."""

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "max_steps", checked_int("max_steps", self.max_steps, 1))
        chance = checked_chance("random_action_chance", self.random_action_chance)
        object.__setattr__(self, "random_action_chance", chance)

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated."""
        assert self.max_steps is not None
        return self.max_steps

    @property
    @abc.abstractmethod
    def action_names(self) -> tuple[str, ...]:
        """The actions, in order."""

    @property
    def bands(self) -> int:
        """Into how many bands, from top to bottom, a replay should divide an image; it stores each distinct one once.

        More than 1 where images repeat in bands, and each band is a whole number of 64-bit words.
        """
        return 1

    @property
    @abc.abstractmethod
    def return_bounds(self) -> tuple[float, float] | None:
        """The worst and the best return of an episode, None without known bounds."""


@dataclass(frozen=True, kw_only=True)
class GameOptions(TaskOptions):
    """Settings of one of several arcade games, checked when made."""

    ACTION_NAMES: ClassVar[Mapping[str, tuple[str, ...]]]
    """The minimal action set of each game."""
    game: str
    """Which game. Set by the task id."""
    sticky_action_chance: float = 0.0
    """Probability that the previous action is repeated."""

    def __post_init__(self) -> None:
        checked_choice("game", self.game, tuple(self.ACTION_NAMES))
        checked_chance("sticky_action_chance", self.sticky_action_chance)
        super().__post_init__()

    @property
    def action_names(self) -> tuple[str, ...]:
        """The game's minimal action set."""
        return self.ACTION_NAMES[self.game]


def build_options(options_class: type[Options], task: str, defaults: dict[str, Any], given: dict[str, Any]) -> Options:
    """Return the options of `task`; unknown names raise.

    `defaults` are the task's own settings, such as its size, which `given` may override.
    """
    assert dataclasses.is_dataclass(options_class)
    shared = {field.name for field in dataclasses.fields(TaskOptions)}
    known = sorted((field.name for field in dataclasses.fields(options_class)), key=shared.__contains__)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            raise ValueError(f"{task} has no option {name!r}{hint}")
    return options_class(**{**defaults, **given})


def checked_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` as an int in low..high."""
    if not is_int(value):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < low or (high is not None and value > high):
        expected = f"{low} or more" if high is None else f"in {low}..{high}"
        raise ValueError(f"{name} must be {expected}, got {value}")
    return int(value)


def checked_chance(name: str, value: object) -> float:
    """Return `value` as a probability."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number in 0..1, got {type(value).__name__}")
    if not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name} must be in 0..1, got {value}")
    return float(value)


def checked_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def checked_flag(name: str, value: object) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
    return bool(value)


def normalised_return(value: float, bounds: tuple[float, float]) -> float:
    """Return `value` on a scale from 0, the worst return, to 1, the best.

    Examples
    --------
    >>> normalised_return(-3.0, (-360.0, 354.0))
    0.5
    """
    low, high = bounds
    return (value - low) / (high - low) if high > low else 0.0
