"""Checks of the arguments of `Replay`'s methods."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.checks import is_int
from backsweep.samplers import Sampler, Uniform
from backsweep.store.layout import host_array
from backsweep.types import Rows

FLOATS = np.dtype(np.float32), np.dtype(np.float64)
"""The dtypes that errors usually have: these are taken without the checks of all others, for speed."""

LARGEST_INT = 2**63 - 1
"""The largest int that a kernel takes."""


def positive_int(name: str, value: Any, most: int | None = None) -> int:
    """Return `value` as an int of 1 or more, and at most `most`."""
    if not is_int(value):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be 1 or more, got {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return int(value)


def checked_gamma(gamma: Any) -> float:
    """Return a discount between 0 and 1."""
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)) or not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be between 0 and 1, got {gamma!r}")
    return float(gamma)


def checked_sampler(sampler: Sampler | None) -> Sampler:
    """Return a sampler's configuration, Uniform() for None."""
    sampler = Uniform() if sampler is None else sampler
    if isinstance(sampler, type) or not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a sampler configuration such as Uniform(), got {sampler!r}")
    return sampler


def checked_rows(row: ArrayLike) -> Rows:
    """Return row numbers as an array of one axis."""
    if type(row) is np.ndarray and row.dtype == np.int64 and row.ndim == 1 and row.flags.c_contiguous:
        return row
    rows = host_array(row, "row")
    if rows.dtype.kind not in "iu":
        raise TypeError(f"row must hold integers, got dtype {rows.dtype}")
    if rows.ndim != 1:
        raise ValueError(f"row must have one axis, got shape {rows.shape}")
    return np.ascontiguousarray(rows, dtype=np.int64)


def checked_steps(steps: ArrayLike, rows: Rows) -> NDArray[np.int64]:
    """Return numbers of steps, one for each row or the same for all."""
    array = host_array(steps, "steps")
    if array.dtype.kind not in "iu":
        raise TypeError(f"steps must hold integers, got dtype {array.dtype}")
    if array.shape not in ((), rows.shape):
        raise ValueError(f"steps must be one number or have the shape of row, {rows.shape}, got {array.shape}")
    if array.size and array.min() < 1:
        raise ValueError(f"steps must be 1 or more, got {array.min()}")
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(LARGEST_INT))
    return array.astype(np.int64)


def checked_errors(values: ArrayLike, rows: Rows, name: str) -> NDArray[np.float64]:
    """Return one number for each row; shapes (n, 1) and (n,) are equivalent."""
    if type(values) is np.ndarray and values.shape == rows.shape and values.dtype in FLOATS:
        return np.ascontiguousarray(values, dtype=np.float64)
    errors = host_array(values, name)
    if errors.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers, got dtype {errors.dtype}")
    if errors.shape != rows.shape and errors.shape != (len(rows), 1):
        raise ValueError(f"{name} must have the shape of row, {rows.shape}, got {errors.shape}")
    return np.ascontiguousarray(errors.reshape(-1), dtype=np.float64)


def refuse_update(rows: Rows, errors: NDArray[np.float64], name: str, total: int, *, plans: bool) -> NoReturn:
    """Raise an error that says what is wrong with a priority update."""
    if not np.isfinite(errors).all():
        found = errors[~np.isfinite(errors)][0]
        hint = " (batch.target is NaN for rows that are newer than the last renew_values: use your own target there)"
        raise ValueError(f"{name} must be finite, got {found}{hint if plans and np.isnan(found) else ''}")
    if rows.min() < 0 or rows.max() >= total:
        raise ValueError(f"row must hold serial numbers from 0 to {total - 1}, got {rows.min()} to {rows.max()}")
    raise ValueError(f"{name} must be 0 or more, got {errors.min()}")


def checked_lanes(lanes: ArrayLike, num_envs: int) -> NDArray[np.int64]:
    """Return the numbers of some lanes, each at most once."""
    array = host_array(lanes, "lanes")
    if array.dtype.kind not in "iu":
        raise TypeError(f"lanes must hold integers, got dtype {array.dtype}")
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"lanes must have one axis and at least one entry, got shape {array.shape}")
    if array.min() < 0 or array.max() >= num_envs:
        raise ValueError(f"lanes must be from 0 to {num_envs - 1}, got {array.min()} to {array.max()}")
    if len(np.unique(array)) != len(array):
        raise ValueError(f"lanes must name each lane at most once, got {array.tolist()!r:.200}")
    return array.astype(np.int64)


def checked_mask(mask: ArrayLike, num_envs: int, lanes: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Return a mask over all lanes; with `lanes`, `mask` refers to those."""
    array = host_array(mask, "mask")
    count = num_envs if lanes is None else len(lanes)
    if array.dtype != np.bool_:
        raise TypeError(f"mask must be bool, got dtype {array.dtype}")
    if array.shape != (count,):
        raise ValueError(f"mask must have shape {(count,)}, got {array.shape}")
    return array if lanes is None else spread(array, lanes, num_envs)


def spread(flags: NDArray[np.bool_], lanes: NDArray[np.int64], num_envs: int) -> NDArray[np.bool_]:
    """Return flags of some lanes as flags of all; the others have False."""
    whole = np.zeros(num_envs, np.bool_)
    whole[lanes] = flags
    return whole


def checked_path(name: str, path: object) -> Path:
    """Return a path; raise if it is none."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise TypeError(f"{name} must be a str or a Path, got {path!r:.200}")
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise ValueError(f"{name} must be the path of a folder, got {os.fspath(path)!r:.200}")
    return Path(path)
