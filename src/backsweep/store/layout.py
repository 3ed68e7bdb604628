"""The memory layout of a space's values: each array has its own aligned place in a row of 64-bit words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.trees import map_tree

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
    frames: int = 1
    """The number of frames on the last axis, if frames come last; they are stored first."""

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape in which a value is stored: frames come first."""
        if self.frames == 1:
            return self.shape
        return (self.frames, *self.shape[:-1], self.shape[-1] // self.frames)

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
    """The places of a space's arrays, checks of incoming values, and views of stored values.

    Parameters
    ----------
    space
        A Box, Discrete, MultiDiscrete or MultiBinary space, or a Dict or Tuple of such.
    argument
        The name of the value in error messages.
    check_box_bounds
        Whether values of a Box must be within its bounds, as actions must. Bounds of observation spaces are often loose
        or wrong, and checking every pixel would cost more than storing it.
    frame_stack
        The number of frames of a value. Frames are contiguous in memory, on whichever axis they come.
    cast
        Whether numbers of another type are rounded to the space's.
    """

    def __init__(
        self, space: gym.Space[Any], argument: str, *, check_box_bounds: bool, frame_stack: int = 1, cast: bool = False
    ) -> None:
        self.space = space
        self.argument = argument
        self._cast = cast
        self._fields: list[Field] = []
        self._tree = self._place(space, argument, 0, check_box_bounds)[0]
        if frame_stack > 1:
            self._tree = self._fields[0] = _stacked_field(self._tree, frame_stack, space)
        self.nbytes = sum(-(-field.nbytes // WORD) * WORD for field in self._fields)
        self.words = self.nbytes // WORD
        # A fast path for the common case: one array without padding.
        self.single = self._fields[0] if self._tree is self._fields[0] else None
        self.has_floats = any(field.dtype.kind == "f" for field in self._fields)
        self.is_checked = self.has_floats or any(field.low is not None for field in self._fields)
        if self.nbytes == 0:
            raise ValueError(f"{argument}_space holds no data: {space}")

    def _place(self, space: gym.Space[Any], name: str, offset: int, check: bool) -> tuple[Any, int]:
        if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)) and not len(space.spaces):
            raise ValueError(f"{self.argument}_space: {name} is an empty {type(space).__name__} and holds no data")
        if isinstance(space, gym.spaces.Dict):
            entries = {}
            for key, inner in space.spaces.items():
                entries[key], offset = self._place(inner, f"{name}[{key!r}]", offset, check)
            return entries, offset
        if isinstance(space, gym.spaces.Tuple):
            placed_inner = []
            for index, inner in enumerate(space.spaces):
                placed, offset = self._place(inner, f"{name}[{index}]", offset, check)
                placed_inner.append(placed)
            return tuple(placed_inner), offset
        supported = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
        if not isinstance(space, supported):
            where = "" if name == self.argument else f" of {name}"
            hint = "; gymnasium.wrappers.FilterObservation leaves parts out" if where else ""
            raise TypeError(
                f"{self.argument}_space: {type(space).__name__}{where} is not supported; "
                f"expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these{hint}"
            )
        low, high = _bounds(space, check)
        shape = tuple(space.shape or ())
        field = Field(name, np.dtype(space.dtype), shape, offset, low, high)
        self._fields.append(field)
        return field, offset + -(-field.nbytes // WORD) * WORD

    def views(self, words: NDArray[np.uint64]) -> Any:
        """Return views of the arrays in `words` (batch, self.words)."""
        raw = words.view(np.uint8)
        return map_tree(lambda field: self._view(raw, field), self._tree)

    def _view(self, raw: NDArray[np.uint8], field: Field) -> NDArray[Any]:
        stored = raw[:, field.offset : field.offset + field.nbytes]
        if field.nbytes == 0:
            return np.empty((len(raw), *field.shape), field.dtype)
        return stored.view(field.dtype).reshape(len(raw), *field.stored_shape)  # splits the last axis: never a copy

    def as_given(self, views: Any) -> Any:
        """Return arrays from `views` in the shape of the space: themselves, or copies where frames come last there."""
        field = self.single
        if field is None or field.frames == 1:
            return views
        return np.ascontiguousarray(np.moveaxis(views, 1, -2)).reshape(len(views), *field.shape)

    def check(self, value: Any, batch: int, name: str) -> Any:
        """Return `value` as arrays with a leading axis of `batch`, or raise an error that says what is wrong.

        With a batch of one the leading axis may be omitted.
        """
        return self._check(self._tree, value, batch, name)

    def _check(self, tree: Any, value: Any, batch: int, name: str) -> Any:
        if isinstance(tree, dict):
            if not isinstance(value, dict):
                raise TypeError(f"{name} must be a dict with the keys {list(tree)}, got {type(value).__name__}")
            if set(value) != set(tree):
                raise ValueError(f"{name} must have the keys {list(tree)}, got {list(value)}")
            return {key: self._check(inner, value[key], batch, f"{name}[{key!r}]") for key, inner in tree.items()}
        if isinstance(tree, tuple):
            if not isinstance(value, tuple) or len(value) != len(tree):
                raise TypeError(f"{name} must be a tuple of {len(tree)} parts, got {value!r:.200}")
            return tuple(
                self._check(inner, item, batch, f"{name}[{i}]")
                for i, (inner, item) in enumerate(zip(tree, value, strict=True))
            )
        return _check_array(tree, value, batch, name, self._cast)


def _stacked_field(field: Any, frame_stack: int, space: gym.Space[Any]) -> Field:
    """Return the field of a stack of frames, which are on the first axis or on the last."""
    shape = field.shape if isinstance(field, Field) and field.low is None else ()
    divided = [axis for axis in (0, len(shape) - 1) if shape and shape[axis] % frame_stack == 0]
    if not isinstance(field, Field) or not divided:
        raise ValueError(
            f"frame_stack={frame_stack} needs a Box observation space whose first or last axis has that many frames "
            f"(or that many times a frame's channels), got {space}"
        )
    # If two axes could hold the frames, it is the short one; the others are height and width.
    if shape[0] == frame_stack or min(divided, key=lambda axis: shape[axis]) == 0:
        return field
    return replace(field, frames=frame_stack)


def _check_array(field: Field, value: Any, batch: int, name: str, cast: bool) -> NDArray[Any]:
    array = value if type(value) is np.ndarray else _as_array(value, field.dtype, name)
    if array.dtype != field.dtype:
        array = _cast(array, field.dtype, name, cast)
    if array.shape != (batch, *field.shape):
        if array.shape != (batch, *field.shape, 1)[: max(2, len(field.shape) + 1)] and (
            batch != 1 or array.shape != field.shape
        ):
            expected = (batch, *field.shape) if batch > 1 else field.shape
            raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
        array = array.reshape(batch, *field.shape)
    if field.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if field.low is not None and ((array < field.low).any() or (array > field.high).any()):
        array = _clip_rounding(field, array, name)
    if field.frames > 1:
        array = np.moveaxis(array.reshape(batch, *field.shape[:-1], field.frames, -1), -2, 1)
    return array


def _clip_rounding(field: Field, array: NDArray[Any], name: str) -> NDArray[Any]:
    """Clip floats that exceed their bounds by a rounding error; refuse those further out."""
    low, high = np.asarray(field.low), np.asarray(field.high)
    if field.dtype.kind == "f":
        slack = 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        low, high = low - slack, high + slack
    wrong = (array < low) | (array > high)
    if wrong.any():
        raise ValueError(f"{name} must lie within its space, from {_range(field)}, got {array[wrong].reshape(-1)[0]}")
    clipped: NDArray[Any] = np.clip(array, field.low, field.high)
    return clipped


def _range(field: Field) -> str:
    low, high = np.min(field.low), np.max(field.high)  # type: ignore[arg-type]
    return f"{low} to {high}"


def host_array(value: Any, name: str = "the value") -> NDArray[Any]:
    """Return an array, also for a torch tensor that requires gradients or is on a GPU; `name` is for errors."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is masked; masked arrays are refused, since all values would be stored: fill it first")
    array: NDArray[Any] = np.asarray(value)
    return array


def _as_array(value: Any, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return an array; Python floats, which have no fixed size, get the wanted dtype."""
    array = host_array(value, name)
    if dtype.kind == "f" and array.dtype.kind in "fiu" and isinstance(value, (list, tuple, float, int)):
        return array.astype(dtype)
    return array


def _cast(array: NDArray[Any], dtype: np.dtype[Any], name: str, rounding: bool) -> NDArray[Any]:
    """Convert to the space's dtype if no value changes, or if floats may be rounded."""
    if array.dtype.kind in "biu" and dtype.kind in "iu":
        cast = array.astype(dtype)
        if (cast == array).all():
            return cast
    elif np.can_cast(array.dtype, dtype, "safe") or (rounding and array.dtype.kind in "biuf" and dtype.kind == "f"):
        with np.errstate(over="ignore"):  # overflow to infinity is refused below
            return array.astype(dtype)
    hint = ""
    if dtype.kind == "f" and array.dtype.kind in "biuf":
        hint = f"; convert it, or make the Replay with cast=True, which rounds to {dtype}"
    elif dtype.kind in "iu" and array.dtype.kind in "biu":
        hint = f" with values from {array.min()} to {array.max()}, which do not fit"
    elif dtype.kind in "iu" and array.dtype.kind == "f":
        hint = "; convert it to integers"
    raise TypeError(f"{name} must have dtype {dtype}, got {array.dtype}{hint}")
