"""Batches put together from several samplers."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_number
from backsweep.graph.graph import GraphDraws
from backsweep.jit.random_streams import named_generator, random_word
from backsweep.samplers.base import Experience, LiveSampler, Sampler, SamplerState, graph_draws
from backsweep.snapshot.contents import need
from backsweep.types import Picks, Rows

MOST_KNOWN_DIVISIONS = 64


@dataclass(frozen=True)
class Mixture:
    """A share of each batch from each part, e.g. ``Mixture([(0.5, Topological()), (0.5, Prioritized())])``.

    Each part gives a whole number of rows. The rounding remainder is carried over to the next batches, so that over
    many batches every part gets exactly its share. No part draws more rows than are used.
    """

    parts: Sequence[tuple[float, Sampler]]
    """Pairs (share, sampler); shares add up to 1."""

    def __post_init__(self) -> None:
        if isinstance(self.parts, str) or not isinstance(self.parts, Iterable):
            raise TypeError(f"Mixture: parts must be a list of pairs (share, sampler), got {self.parts!r}")
        for part in (parts := tuple(self.parts)):
            if not isinstance(part, (tuple, list)) or len(part) != 2:
                raise TypeError(
                    f"Mixture: parts must be pairs (share, sampler), such as (0.5, Uniform()), got {part!r}"
                )
        parts = tuple((share, sampler) for share, sampler in parts)
        if not parts:
            raise ValueError("Mixture: parts must not be empty")
        for share, sampler in parts:
            if not (is_number(share) and share >= 0):
                raise ValueError(f"Mixture: a share must be 0 or more and finite, got {share!r}")
            if not isinstance(sampler, Sampler) or isinstance(sampler, type):
                raise TypeError(f"Mixture: parts must be pairs (share, sampler), got {sampler!r} as a sampler")
        total = math.fsum(share for share, _ in parts)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"Mixture: shares must add up to 1, got {[share for share, _ in parts]} = {total}")
        object.__setattr__(self, "parts", parts)

    @property
    def needs_graph(self) -> bool:
        """Whether any part does."""
        return any(sampler.needs_graph for _, sampler in self.parts)

    @property
    def graph_draws(self) -> GraphDraws:
        """What the parts draw by weight, together."""
        return functools.reduce(operator.or_, (graph_draws(sampler) for _, sampler in self.parts))

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveMixture:
        """Return the live sampler; each part gets its own generator."""
        return LiveMixture(self, experience, generator)


@dataclass(frozen=True, eq=False)
class Division:
    """How one batch is divided."""

    spans: tuple[tuple[LiveSampler, slice], ...]
    """The parts with a share, and their rows of the batch."""
    source: NDArray[np.int64]
    """The part of each row."""


class LiveMixture(LiveSampler):
    """The live parts and the remainder carried over for each."""

    def __init__(self, config: Mixture, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        root = int(random_word(generator))
        self.parts = [
            sampler.build(experience, named_generator(root, "mixture", str(index)))
            for index, (_, sampler) in enumerate(config.parts)
        ]
        self.shares = [float(share) for share, _ in config.parts]
        self.owed = [0.0] * len(self.parts)
        self._known_divisions: dict[tuple[int, ...], Division] = {}
        self._even_batch, self._even_division = 0, Division((), np.zeros(0, np.int64))
        self._active = [part for part in self.parts if part.uses_priorities]
        self._listeners = tuple(listener for part in self.parts for listener in part.listeners())

    def split(self, count: int) -> list[int]:
        """Return each part's number of rows in a batch of `count`, and update the remainders."""
        due = [share * count + owed for share, owed in zip(self.shares, self.owed, strict=True)]
        counts = [max(math.floor(part + 1e-9), 0) for part in due]
        missing = count - sum(counts)
        if missing:
            # The largest remainder comes first; the earlier part wins a tie.
            order = sorted(range(len(due)), key=lambda index: counts[index] - due[index])
            if missing > 0:
                for index in order[:missing]:
                    counts[index] += 1
            else:
                # Parts that got too much before can be due less than nothing, and then the others are due more than
                # the batch: those owed least give way.
                for index in [index for index in order if counts[index] > 0][missing:]:
                    counts[index] -= 1
        self.owed = [part - given for part, given in zip(due, counts, strict=True)]
        return counts

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows, part after part."""
        balanced = not any(self.owed)
        if balanced and count == self._even_batch:
            division = self._even_division
        else:
            division = self._division(tuple(self.split(count)))
            if balanced and not any(self.owed):
                # Without remainders the split never changes.
                self._even_batch, self._even_division = count, division
        row = np.empty(count, np.int64)
        weight = np.ones(count, np.float32)
        for part, span in division.spans:
            part.pick_into(row[span], weight[span])
        return Picks(row, weight, division.source)

    def _division(self, counts: tuple[int, ...]) -> Division:
        """Return how a batch is split, given each part's count. There are few ways to split one, so they are cached."""
        division = self._known_divisions.get(counts)
        if division is None:
            ends = list(itertools.accumulate(counts))
            source = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
            source.flags.writeable = False
            division = Division(
                tuple(
                    (part, slice(end - share, end))
                    for part, share, end in zip(self.parts, counts, ends, strict=True)
                    if share
                ),
                source,
            )
            if len(self._known_divisions) >= MOST_KNOWN_DIVISIONS:
                self._known_divisions.clear()
            self._known_divisions[counts] = division
        return division

    def added(self, first: int, last: int) -> None:
        """Tell every part that listens."""
        for added in self._listeners:
            added(first, last)

    def listeners(self) -> tuple[Callable[[int, int], None], ...]:
        """Return those of the parts."""
        return self._listeners

    @property
    def uses_priorities(self) -> bool:
        """Whether any part does."""
        return bool(self._active)

    def update(self, row: Rows, td_error: NDArray[np.float64]) -> None:
        """Pass all TD errors to every part that uses priorities: a row has one priority, whichever part picked it."""
        for part in self._active:
            part.update(row, td_error)

    def statistics(self) -> dict[str, float]:
        """Return the statistics of every part, prefixed with its index."""
        return {
            f"part{index}_{name}": value
            for index, part in enumerate(self.parts)
            for name, value in part.statistics().items()
        }

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def state(self) -> SamplerState:
        """Return the parts' states and remainders."""
        state = super().state()
        state.values["owed"] = list(self.owed)
        state.values["parts"] = []
        for index, part in enumerate(self.parts):
            inner = part.state()
            state.values["parts"].append(inner.values)
            state.arrays.update({f"part{index}/{name}": array for name, array in inner.arrays.items()})
        return state

    def load_state(self, state: SamplerState) -> None:
        """Restore the state of every part."""
        super().load_state(state)
        owed, parts = state.values["owed"], state.values["parts"]
        need(len(owed) == len(parts) == len(self.parts), "the parts of a mixture are not those of its configuration")
        need(all(abs(float(share)) <= len(self.parts) for share in owed), "the remainder of a part is out of range")
        self.owed = [float(share) for share in owed]
        for index, part in enumerate(self.parts):
            prefix = f"part{index}/"
            arrays = {
                name.removeprefix(prefix): array for name, array in state.arrays.items() if name.startswith(prefix)
            }
            part.load_state(SamplerState(arrays, state.values["parts"][index]))
