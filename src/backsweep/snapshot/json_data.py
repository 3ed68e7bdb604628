"""Checks that metadata survives a round trip through JSON exactly."""

from __future__ import annotations

import math

MAX_DEPTH = 64
MAX_INT_BITS = 8192  # far above any generator's state, below the length at which Python refuses to print an int


def check_json(value: object, where: str, depth: int = 0) -> None:
    """Refuse anything that would not survive a round trip through JSON unchanged.

    Types are compared exactly, not with ``isinstance``: a tuple would come back as a list and a numpy scalar as a
    Python number, and a resumed run would then differ from the one that was saved.

    Raises
    ------
    TypeError
        For a type that JSON does not have.
    ValueError
        For NaN and infinity, for enormous integers, and for nesting that is too deep or refers to itself.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:  # type: ignore[attr-defined]
            raise ValueError(f"{where} is an integer of more than {MAX_INT_BITS} bits; save it as an array instead")
        return
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise ValueError(f"{where} is {value!r}, which JSON cannot hold; expected a finite number")
        return
    if depth >= MAX_DEPTH:
        raise ValueError(f"{where} is nested more than {MAX_DEPTH} levels deep, or refers to itself")
    if isinstance(value, dict) and kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"{where} has the key {key!r} of type {type(key).__name__}; JSON keys are strings")
            check_json(item, f"{where}[{key!r}]", depth + 1)
        return
    if isinstance(value, list) and kind is list:
        for index, item in enumerate(value):
            check_json(item, f"{where}[{index}]", depth + 1)
        return
    raise TypeError(
        f"{where} is a {kind.__module__}.{kind.__qualname__}; "
        "expected plain JSON: None, bool, int, float, str, list or dict (arrays go in `arrays`)"
    )
