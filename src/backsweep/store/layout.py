"""How the values of a space lie in memory: every array of it at its own aligned place in a row of 64-bit words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

WORD = 8


@dataclass(frozen=True)
class Field:
    """One array of a space."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    low: NDArray[Any] | None
    high: NDArray[Any] | None

    @property
    def nbytes(self) -> int:
        """The bytes of one value."""
        return math.prod(self.shape) * self.dtype.itemsize


def _bounds(space: gym.Space[Any], values_are_checked: bool) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    if isinstance(space, gym.spaces.Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return np.asarray(space.start), np.asarray(space.start + space.nvec - 1)
    if isinstance(space, gym.spaces.MultiBinary):
        return np.zeros(space.shape, space.dtype), np.ones(space.shape, space.dtype)
    if isinstance(space, gym.spaces.Box) and values_are_checked:
        return space.low, space.high
    return None, None


class Layout:
    """The places of a space's arrays, checks of values that come in, and views of values that go out.

    Parameters
    ----------
    space
        A Box, Discrete, MultiDiscrete or MultiBinary space, or a Dict or Tuple of such.
    argument
        What error messages call the value.
    check_box_bounds
        Whether values of a Box must lie within its bounds. Actions are held to them. Observations are not: bounds of
        observation spaces are often loose or wrong, and a check of every pixel would cost more than storing it.
    """

    def __init__(self, space: gym.Space[Any], argument: str, *, check_box_bounds: bool) -> None:
        self.space = space
        self.argument = argument
        self._fields: list[Field] = []
        self._tree = self._place(space, argument, 0, check_box_bounds)[0]
        self.nbytes = sum(-(-field.nbytes // WORD) * WORD for field in self._fields)
        self.words = self.nbytes // WORD
        # The common case, one array with no padding, is served without a detour.
        self.single = self._fields[0] if self._tree is self._fields[0] else None
        self.has_floats = any(field.dtype.kind == "f" for field in self._fields)
        if self.nbytes == 0:
            raise ValueError(f"{argument}_space holds no data: {space}")

    def _place(self, space: gym.Space[Any], name: str, offset: int, check: bool) -> tuple[Any, int]:
        if isinstance(space, gym.spaces.Dict):
            entries = {}
            for key, part in space.spaces.items():
                entries[key], offset = self._place(part, f"{name}[{key!r}]", offset, check)
            return entries, offset
        if isinstance(space, gym.spaces.Tuple):
            parts = []
            for index, part in enumerate(space.spaces):
                placed, offset = self._place(part, f"{name}[{index}]", offset, check)
                parts.append(placed)
            return tuple(parts), offset
        supported = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
        if not isinstance(space, supported):
            raise TypeError(
                f"{self.argument}_space: {type(space).__name__} is not supported; "
                "expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these"
            )
        low, high = _bounds(space, check)
        shape = tuple(space.shape or ())
        field = Field(name, np.dtype(space.dtype), shape, offset, low, high)
        self._fields.append(field)
        return field, offset + -(-field.nbytes // WORD) * WORD

    def views(self, words: NDArray[np.uint64]) -> Any:
        """Return the arrays that lie in `words` (batch, self.words), without copying."""
        raw = words.view(np.uint8)
        return self._map(self._tree, lambda field: self._view(raw, field))

    def _view(self, raw: NDArray[np.uint8], field: Field) -> NDArray[Any]:
        part = raw[:, field.offset : field.offset + field.nbytes]
        if field.nbytes == 0:
            return np.empty((len(raw), *field.shape), field.dtype)
        return part.view(field.dtype).reshape(len(raw), *field.shape)  # splits the last axis: never a copy

    def _map(self, tree: Any, function: Any) -> Any:
        if isinstance(tree, dict):
            return {key: self._map(part, function) for key, part in tree.items()}
        if isinstance(tree, tuple):
            return tuple(self._map(part, function) for part in tree)
        return function(tree)

    def check(self, value: Any, batch: int, name: str) -> Any:
        """Return `value` as arrays with a leading axis of `batch`, or raise an error that says what is wrong.

        With a batch of one the leading axis may be left out.
        """
        return self._check(self._tree, value, batch, name)

    def _check(self, tree: Any, value: Any, batch: int, name: str) -> Any:
        if isinstance(tree, dict):
            if not isinstance(value, dict):
                raise TypeError(f"{name} must be a dict with the keys {list(tree)}, got {type(value).__name__}")
            if set(value) != set(tree):
                raise ValueError(f"{name} must have the keys {list(tree)}, got {list(value)}")
            return {key: self._check(part, value[key], batch, f"{name}[{key!r}]") for key, part in tree.items()}
        if isinstance(tree, tuple):
            if not isinstance(value, tuple) or len(value) != len(tree):
                raise TypeError(f"{name} must be a tuple of {len(tree)} parts, got {value!r:.200}")
            return tuple(
                self._check(part, item, batch, f"{name}[{i}]")
                for i, (part, item) in enumerate(zip(tree, value, strict=True))
            )
        return _check_array(tree, value, batch, name)


def _check_array(field: Field, value: Any, batch: int, name: str) -> NDArray[Any]:
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.dtype != field.dtype:
        array = _cast(array, field.dtype, name)
    if array.shape != (batch, *field.shape):
        if batch != 1 or array.shape != field.shape:
            expected = (batch, *field.shape) if batch > 1 else field.shape
            raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
        array = array.reshape(1, *field.shape)
    if field.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if field.low is not None and ((array < field.low).any() or (array > field.high).any()):
        outside = array[(array < field.low) | (array > field.high)].reshape(-1)[0]
        raise ValueError(f"{name} must lie within its space, from {_range(field)}, got {outside}")
    return array


def _range(field: Field) -> str:
    low, high = np.min(field.low), np.max(field.high)  # type: ignore[arg-type]
    return f"{low} to {high}"


def _cast(array: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Turn e.g. Python ints into the space's dtype where no value changes."""
    if array.dtype.kind in "biu" and dtype.kind in "iu":
        cast = array.astype(dtype)
        if (cast == array).all():
            return cast
    elif np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype)
    raise TypeError(f"{name} must have dtype {dtype}, got {array.dtype}")
