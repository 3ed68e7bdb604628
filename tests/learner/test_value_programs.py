"""Requests of any size are served by programs of a few sizes, with the values that were asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from backsweep.learner.value_programs import ValuePrograms, padded_size


def evaluate(lanes: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Made-up values that say which lane, row, action and network they are of."""
    values = (lanes[:, None, None] * 1_000 + rows[:, :, None] * 10 + torch.arange(3)).float()
    return torch.stack([values, -values])


def test_requests_are_padded_and_cut() -> None:
    recorded = []

    def record(program: Callable[[], None]) -> Callable[[], None]:
        recorded.append(program)
        return program

    programs = ValuePrograms(evaluate, record, 3, np.float32, torch.device("cpu"))
    generator = np.random.default_rng(0)
    for count, steps in ((1, 1), (3, 70), (4, 128), (4, 100), (2, 64), (3, 70), (1, 5)):
        lanes, rows = generator.integers(0, 9, count), generator.integers(0, 50, (count, steps))
        target, online = programs.enqueue(lanes, rows)
        expected = lanes[:, None, None] * 1_000 + rows[:, :, None] * 10 + np.arange(3)
        assert np.array_equal(target, expected)
        assert np.array_equal(online, -expected)
    assert len(recorded) == 3  # (1, 64), (4, 128) and (2, 64)


def test_sizes_are_powers_of_two() -> None:
    assert padded_size(1, 1) == (1, 64)
    assert padded_size(5, 65) == (8, 128)
    assert padded_size(8, 128) == (8, 128)
