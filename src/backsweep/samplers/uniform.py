"""Uniform experience replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from backsweep.samplers.base import Experience, LiveSampler
from backsweep.seeding import random_word
from backsweep.store import kernels
from backsweep.types import Picks


@dataclass(frozen=True)
class Uniform:
    """Every live row with the same chance, with replacement."""

    needs_graph = False

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveUniform:
        """Return the live sampler."""
        return LiveUniform(experience, generator)


class LiveUniform(LiveSampler):
    """Draws serial numbers."""

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows."""
        row = np.empty(count, np.int64)
        kernels.draw_uniform(random_word(self.generator), self.experience.total, len(self.experience), row)
        return Picks(row)
