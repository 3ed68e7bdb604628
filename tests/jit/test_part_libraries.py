"""Kernels that other kernels call are parts of these, and whole kernels once Python calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep.jit import kernel_cache
from backsweep.jit.compilation import entry_point, inlined, interpreted, kernel, threaded
from backsweep.jit.kernel_cache import is_part

pytestmark = pytest.mark.skipif(interpreted(), reason="nothing is compiled")


def compiled(dispatcher: Any) -> list[bool]:
    """Return, of everything that was compiled of a kernel, whether it is a part."""
    return [is_part(result) for result in dispatcher.overloads.values()]


def kernels() -> tuple[Any, Any, Any]:
    """Return three new kernels: the first calls the second, which calls the third."""

    @inlined
    def root(number: int) -> int:
        if number < 0:
            raise ValueError("a number below 0")
        return int(np.sqrt(number))

    @kernel
    def half_root(number: int) -> int:
        return root(number) // 2

    @kernel
    def total(numbers: NDArray[np.int64]) -> int:
        found = 0
        for i in range(numbers.shape[0]):
            found += half_root(numbers[i])
        return found

    return total, half_root, root


def test_what_a_kernel_calls_is_compiled_as_a_part_of_it() -> None:
    total, half_root, root = kernels()
    assert total(np.array([16, 36, 100])) == 2 + 3 + 5
    assert (compiled(total), compiled(half_root), compiled(root)) == ([False], [True], [True])


def test_a_part_that_python_calls_is_compiled_in_full() -> None:
    total, half_root, root = kernels()
    assert total(np.array([16])) == 2
    assert entry_point(half_root, 1) is None, "a part has no code to be called"
    assert (half_root(36), root(36)) == (3, 6)
    assert (compiled(half_root), compiled(root)) == ([False], [False])
    entry = entry_point(half_root, 1)
    assert entry is not None
    assert entry(100) == 5
    assert total(np.array([16, 36])) == 5
    other, *_ = kernels()
    assert other(np.array([16, 36])) == 5


def test_an_error_in_a_part_reaches_python() -> None:
    total, half_root, _ = kernels()
    for call in (lambda: total(np.array([4, -1])), lambda: half_root(-1)):
        with pytest.raises(ValueError, match="a number below 0"):
            call()
    assert total(np.array([16])) == 2


def test_threads_call_parts() -> None:
    _, half_root, _ = kernels()
    from numba import prange

    @kernel
    def put(numbers: NDArray[np.int64], i: int) -> None:
        numbers[i] = half_root(numbers[i])

    @threaded
    def all_of(numbers: NDArray[np.int64]) -> None:
        for i in prange(numbers.shape[0]):
            put(numbers, i)

    numbers = np.array([16, 36, 100])
    all_of(numbers)
    assert numbers.tolist() == [2, 3, 5]


def outer(number: int) -> int:
    return inner_kernel(number) + 1


def inner(number: int) -> int:
    return 7 * number


inner_kernel = kernel(inner)


def test_parts_are_kept_with_the_kernel_and_not_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setitem(globals(), "inner_kernel", kernel(inner))
    assert kernel(outer)(6) == 43
    assert {path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("*.nbi")} == {"outer"}
    again = kernel(outer)
    assert again(5) == 36
    assert sum(again.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]
    # A kernel that was kept whole serves others as a part.
    assert inner_kernel(3) == 21
    monkeypatch.setitem(globals(), "inner_kernel", kernel(inner))
    for path in tmp_path.rglob("*outer*"):
        path.unlink()
    assert kernel(outer)(4) == 29
    assert sum(inner_kernel.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]
    assert compiled(inner_kernel) == [True]
    assert inner_kernel(2) == 14
