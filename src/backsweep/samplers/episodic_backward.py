"""Episodic backward update: whole episodes, last step first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from backsweep.checks import need_choice, need_flags
from backsweep.jit.random_streams import random_word
from backsweep.samplers import episodic_backward_kernels
from backsweep.samplers.base import Experience, LiveSampler, SamplerState
from backsweep.samplers.uniform import fill_up
from backsweep.snapshot.contents import need
from backsweep.store.ring_kernels import RING
from backsweep.types import Picks


@dataclass(frozen=True)
class EpisodicBackward:
    """Draw an episode uniformly and return it from its last step backwards, batch by batch.

    When an episode is finished, the next one fills the rest of the batch. A partly overwritten
    episode is returned down to its oldest live step, an unfinished one from its newest step.
    `Replay.episode` and `Replay.read` give the whole episode, which EBU's targets need.
    """

    timeouts: bool = True
    """Whether episodes that ended by truncation are drawn."""
    running: bool = True
    """Whether episodes that have not ended yet are drawn."""
    fallback: Literal["uniform", "error"] = "uniform"
    """What to do while no episode can be drawn: return uniform rows, or raise an error."""

    needs_graph = False

    def __post_init__(self) -> None:
        need_flags(self, "timeouts", "running")
        need_choice(self, "fallback", "uniform", "error")

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveEpisodicBackward:
        """Return the live sampler."""
        return LiveEpisodicBackward(self, experience, generator)


class LiveEpisodicBackward(LiveSampler):
    """A cursor that walks back through episodes."""

    def __init__(self, config: EpisodicBackward, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        self.config = config
        self.cursor = -1

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows."""
        store = self.experience.store
        row = np.empty(count, np.int64)
        seed = random_word(self.generator)
        filled, self.cursor = episodic_backward_kernels.walk_back(
            seed, self.cursor, self.config.timeouts, self.config.running, store.table[RING], row
        )
        fill_up(row, filled, self.config.fallback, self, "no episode may be drawn yet")
        return Picks(row)

    def state(self) -> SamplerState:
        """Return the position in the current episode."""
        state = super().state()
        state.values["cursor"] = int(self.cursor)
        return state

    def load_state(self, state: SamplerState) -> None:
        """Resume in the middle of an episode."""
        super().load_state(state)
        cursor = state.values["cursor"]
        need(type(cursor) is int and -1 <= cursor < self.experience.total, "the position in an episode is out of range")
        self.cursor = cursor
