"""Checks of options, shared by all families."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, TypeVar

import numpy as np

Options = TypeVar("Options")


def build_options(options_class: type[Options], task: str, defaults: dict[str, Any], given: dict[str, Any]) -> Options:
    """Return the options of `task`; unknown names raise.

    `defaults` are the task's own settings, such as its size, which `given` may override.
    """
    assert dataclasses.is_dataclass(options_class)
    known = [field.name for field in dataclasses.fields(options_class) if field.init]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            raise ValueError(f"{task} has no option {name!r}{hint}")
    return options_class(**{**defaults, **given})


def checked_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` as an int in low..high."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
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
