"""Proportional prioritized experience replay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_number, need_fields, need_flags
from backsweep.jit.random_streams import random_word
from backsweep.samplers import sum_tree_kernels
from backsweep.samplers.base import Experience, LiveSampler, SamplerState
from backsweep.samplers.sum_tree import SumTree
from backsweep.samplers.sum_tree_kernels import LARGEST_PRIORITY
from backsweep.samplers.uniform_kernels import draw_uniform
from backsweep.snapshot.contents import need
from backsweep.store.ring_kernels import TOTAL
from backsweep.types import Picks, Rows


@dataclass(frozen=True)
class Prioritized:
    """Rows with probability proportional to (|TD error| + epsilon) ** alpha.

    New rows get the largest priority that any row has had so far. Importance weights are (N P) ** -beta, divided by the
    largest one.

    With graph values, rows are drawn uniformly while outcomes are too random to plan with (`GraphValues.noise_limit`):
    large TD errors are then mostly chance. Priorities are kept up to date meanwhile.
    """

    alpha: float = 0.6
    """How much priorities matter: 0 is uniform."""
    beta: float = 0.4
    """How much importance weights correct for the unequal probabilities: 1 corrects fully."""
    final_beta: float = 1.0
    """The final value of beta."""
    beta_rows: int | None = None
    """The number of added rows over which beta rises linearly to `final_beta`; None keeps `beta` constant."""
    epsilon: float = 0.01
    """Added to the absolute TD error, so that every row can be drawn."""
    clip: float | None = None
    """Largest absolute TD error that counts. The paper's library used 1, which makes PER nearly uniform when rewards
    are in the hundreds; the default does not clip."""
    normalise: Literal["buffer", "batch"] = "buffer"
    """Divide weights by the largest that any live row would have, or by the largest in the batch."""
    stratified: bool = False
    """Draw one row from each of `batch` equal slices of the total priority instead of independently."""

    needs_graph = False

    def __post_init__(self) -> None:
        need_fields(self, lambda v: is_number(v) and v >= 0, "0 or more and finite", "alpha", "beta", "final_beta")
        need_fields(self, lambda v: is_number(v) and v > 0, "positive and finite", "epsilon")
        try:
            smallest = float(self.epsilon) ** float(self.alpha)
        except OverflowError:
            smallest = math.inf
        if not 0.0 < smallest < math.inf:
            wrong = "vanish" if smallest == 0.0 else "overflow"
            raise ValueError(
                f"Prioritized: epsilon ** alpha must not {wrong}, got {self.epsilon!r} ** {self.alpha!r} = {smallest}"
            )
        need_fields(self, lambda v: v is None or (is_number(v) and v > 0), "positive and finite, or None", "clip")
        whole = "1 or more and finite, or None"
        need_fields(self, lambda v: v is None or (is_number(v) and v >= 1), whole, "beta_rows")
        need_flags(self, "stratified")
        need_fields(self, lambda v: isinstance(v, str) and v in ("buffer", "batch"), "'buffer' or 'batch'", "normalise")

    def build(self, experience: Experience, generator: np.random.Generator) -> LivePrioritized:
        """Return the live sampler."""
        return LivePrioritized(self, experience, generator)


class LivePrioritized(LiveSampler):
    """Sum and minimum trees over the slots of the ring."""

    def __init__(self, config: Prioritized, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        self.config = config
        self._tree = SumTree(experience.capacity, with_minima=config.normalise == "buffer")
        self.largest = 1.0
        self._counters = experience.store.counters.data  # read faster than the array
        self._settled = 0
        """Rows from this serial number on get their priorities when the tree is next used."""
        # As floats: kernels would be compiled again for ints.
        self._clip = math.inf if config.clip is None else float(config.clip)
        self._alpha, self._epsilon = float(config.alpha), float(config.epsilon)
        self._first_beta, self._final_beta = float(config.beta), float(config.final_beta)

    @property
    def beta(self) -> float:
        """The current exponent of the importance weights."""
        config = self.config
        if config.beta_rows is None:
            return self._first_beta
        done = min(self.experience.total / config.beta_rows, 1.0)
        return self._first_beta + done * (self._final_beta - self._first_beta)

    def settle(self) -> None:
        """Give the rows that were added the largest priority so far; to be called before that changes."""
        last = self._counters[TOTAL]
        if last > self._settled:
            first, capacity = max(self._settled, self.experience.oldest), self.experience.capacity
            sum_tree_kernels.set_range(first, last, capacity, self.largest, self._tree.addresses)
            self._settled = last

    def note_settled(self, largest: float) -> None:
        """Called after a kernel has set the priorities of all rows, of which this is the largest so far."""
        self.largest, self._settled = largest, self._counters[TOTAL]

    @property
    def tree(self) -> SumTree:
        """The priorities of all rows."""
        self.settle()
        return self._tree

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows."""
        row = np.empty(count, np.int64)
        weight = np.empty(count, np.float32)
        self.pick_into(row, weight)
        return Picks(row, weight)

    def pick_into(self, row: Rows, weight: NDArray[np.float32]) -> None:
        """Write chosen live rows and their weights to the given arrays."""
        experience = self.experience
        if experience.is_noisy:
            draw_uniform(random_word(self.generator), experience.total, len(experience), row)
            weight[:] = 1.0
            return
        sum_tree_kernels.draw_prioritized(
            random_word(self.generator),
            experience.oldest,
            experience.capacity,
            self.beta,
            self.config.stratified,
            self.tree.addresses,
            row,
            weight,
        )

    @property
    def uses_priorities(self) -> bool:
        """Always true."""
        return True

    def update(self, row: Rows, td_error: NDArray[np.float64]) -> None:
        """Set priorities from TD errors of live rows."""
        self.largest = sum_tree_kernels.update_priorities(
            row,
            td_error,
            self.experience.capacity,
            self._alpha,
            self._epsilon,
            self._clip,
            self.largest,
            self.tree.addresses,
        )

    def priorities(self, row: Rows) -> NDArray[np.float64]:
        """Return the priorities of live rows, alpha applied."""
        return self.tree.leaves(row % self.experience.capacity)

    def statistics(self) -> dict[str, float]:
        """Return the current beta and the distribution of priorities."""
        mean = self.tree.total / max(len(self.experience), 1)
        return {"beta": self.beta, "mean_priority": mean, "largest_priority": self.largest}

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes

    def state(self) -> SamplerState:
        """Return the priorities of the used slots; the trees are rebuilt from them."""
        state = super().state()
        state.arrays["priorities"] = self.tree.leaves(slice(min(self.experience.total, self.experience.capacity)))
        state.values["largest"] = self.largest
        return state

    def load_state(self, state: SamplerState) -> None:
        """Restore saved priorities."""
        super().load_state(state)
        priorities, largest = state.arrays["priorities"], float(state.values["largest"])
        experience, tree = self.experience, self._tree
        used = min(experience.total, experience.capacity)
        need(priorities.dtype == np.float64 and priorities.shape == (used,), "priorities do not fit the rows")
        slots = None if len(experience) == len(priorities) else experience.store.live_slots()
        live = priorities if slots is None else priorities[slots]
        # The smallest and the largest of numbers among which is NaN are NaN, which is not above 0.
        need(not len(live) or 0 < live.min() <= live.max() <= LARGEST_PRIORITY, "a priority is not a positive number")
        need(0 < largest <= LARGEST_PRIORITY, "the largest priority is not a positive number")
        self.note_settled(largest)
        if slots is None:
            tree.build(priorities)
            return
        # After `clear` some slots are empty; they must not count as the smallest priority.
        for slot in slots.tolist():
            sum_tree_kernels.set_range(slot, slot + 1, experience.capacity, priorities[slot], tree.addresses)
