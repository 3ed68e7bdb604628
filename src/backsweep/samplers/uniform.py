"""Uniform experience replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import random_word
from backsweep.samplers.base import Experience, LiveSampler
from backsweep.samplers.uniform_kernels import draw_uniform
from backsweep.store.ring_kernels import LIVE, TOTAL
from backsweep.types import Picks, Rows


@dataclass(frozen=True)
class Uniform:
    """Every live row with equal probability, with replacement."""

    needs_graph = False

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveUniform:
        """Return the live sampler."""
        return LiveUniform(experience, generator)


class LiveUniform(LiveSampler):
    """Draws serial numbers."""

    def __init__(self, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        self._counters = experience.store.counters.data  # read faster than the array

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows."""
        row = np.empty(count, np.int64)
        self._draw(row)
        return Picks(row)

    def pick_into(self, row: Rows, weight: NDArray[np.float32]) -> None:
        """Write chosen live rows to the given array."""
        self._draw(row)

    def _draw(self, row: Rows) -> None:
        draw_uniform(random_word(self.generator), self._counters[TOTAL], self._counters[LIVE], row)


def fill_up(row: Rows, filled: int, fallback: str, sampler: LiveSampler, why: str) -> None:
    """Fill ``row[filled:]`` with uniform rows, or raise, as the sampler's configuration says."""
    if filled == len(row):
        return
    if fallback == "error":
        raise RuntimeError(f"{type(sampler).__name__}: {why}, and fallback='error' is set")
    draw_uniform(random_word(sampler.generator), sampler.experience.total, len(sampler.experience), row[filled:])
