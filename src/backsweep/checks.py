"""Checks of the fields of configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeGuard, get_args, get_origin, get_type_hints

import numpy as np

LARGEST_FLOAT = int(np.finfo(np.float64).max)


def is_int(value: object) -> TypeGuard[int]:
    """Return whether a value is an int, of Python or numpy; a bool is none, and neither is a time of numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= LARGEST_FLOAT if isinstance(value, int) else math.isfinite(value)


def need_fields(configuration: Any, holds: Callable[[Any], bool], expected: str, *names: str) -> None:
    """Refuse fields of a configuration for which `holds` is False, saying what was expected."""
    for name in names:
        if not holds(value := getattr(configuration, name)):
            raise ValueError(f"{type(configuration).__name__}: {name} must be {expected}, got {value!r}")


def need_choice(configuration: Any, name: str, *choices: str) -> None:
    """Refuse a field that is none of several words."""
    need_fields(configuration, lambda value: isinstance(value, str) and value in choices, f"one of {choices}", name)


def need_choices(configuration: Any) -> None:
    """Refuse every field whose type is `Literal` and whose value is none of its words."""
    for name, choices in _choices(configuration.__class__).items():
        need_choice(configuration, name, *choices)


@cache
def _choices(kind: type) -> dict[str, tuple[str, ...]]:
    return {name: get_args(hint) for name, hint in get_type_hints(kind).items() if get_origin(hint) is Literal}


def need_plain_types(configuration: Any) -> None:
    """Refuse every field whose type is int, float or bool (or one of them and None) and whose value is not."""
    for name, (kind, may_be_none) in _plain_types(configuration.__class__).items():
        holds, expected = _PLAIN[kind]
        value = getattr(configuration, name)
        if not (holds(value) or (may_be_none and value is None)):
            raise ValueError(f"{name} must be {expected}{' or None' if may_be_none else ''}, got {value!r}")


_PLAIN: dict[type, tuple[Callable[[Any], bool], str]] = {
    int: (is_int, "an int"),
    float: (is_number, "a number"),
    bool: (lambda value: isinstance(value, (bool, np.bool_)), "True or False"),
}


@cache
def _plain_types(kind: type) -> dict[str, tuple[type, bool]]:
    """Return the fields of these types, and whether each may be None."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        options = set(get_args(hint)) or {hint}
        if len(options - {NoneType}) == 1 and (plain := next(iter(options - {NoneType}))) in _PLAIN:
            found[name] = (plain, NoneType in options)
    return found


def need_flags(configuration: Any, *names: str) -> None:
    """Refuse flags of a configuration that are not bool: other values would silently count as True."""
    for name in names:
        value = getattr(configuration, name)
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{type(configuration).__name__}: {name} must be a bool, got {value!r}")
