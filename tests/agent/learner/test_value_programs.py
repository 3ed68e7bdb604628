"""Requests of any size are served by programs of a few sizes, with the values that were asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from backsweep.agent.learner.packed_arrays import copy
from backsweep.agent.learner.value_programs import CHUNK, ValuePrograms, filled_up


def evaluate(runs: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Made-up values that say which run, row, action and network they are of."""
    values = (runs[:, None, None] * 1_000 + rows[:, :, None] * 10 + torch.arange(3)).float()
    return torch.stack([values, -values])


def test_requests_are_filled_up_and_cut() -> None:
    recorded = []

    def record(program: Callable[[], None]) -> Callable[[], None]:
        recorded.append(program)
        return program

    programs = ValuePrograms(evaluate, record, copy, 3, np.float32, torch.device("cpu"))
    generator = np.random.default_rng(0)
    for count in (1, 5, 6, 4, 5, 1):
        runs, rows = generator.integers(0, 9, count), generator.integers(0, 50, (count, CHUNK))
        target, online = programs.enqueue(runs, rows)
        expected = runs[:, None, None] * 1_000 + rows[:, :, None] * 10 + np.arange(3)
        assert np.array_equal(target, expected)
        assert np.array_equal(online, -expected)
    assert len(recorded) == 3  # of 1, 6 and 4 chunks


def test_sizes_grow_by_a_third_or_a_half() -> None:
    sizes = [filled_up(chunks) for chunks in range(1, 1000)]
    assert sorted(set(sizes))[:9] == [1, 2, 3, 4, 6, 8, 12, 16, 24]
    assert all(size >= chunks for chunks, size in enumerate(sizes, 1))
    assert all(size < 1.5 * chunks for chunks, size in enumerate(sizes, 1) if chunks > 1)
