"""The plain-Python twins of the samplers.

They draw the same words from the same numpy generators as the real ones and stretch them with the twin of SplitMix64,
so the same seed must give the very same rows.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from backsweep.jit.random_streams import named_generator, random_word
from backsweep.samplers.base import Sampler
from backsweep.samplers.episodic_backward import EpisodicBackward
from backsweep.samplers.mixture import Mixture
from backsweep.samplers.prioritized import Prioritized
from backsweep.samplers.topological import Topological
from backsweep.samplers.uniform import Uniform
from backsweep.sweep.sweep import PseudoTerminals, Terminals
from twins.graph import ReferenceGraph
from twins.random_streams import SplitMix64
from twins.store import RUNNING, TRUNCATED, Episode, ReferenceStore, Row, draw_uniform
from twins.sweep import ReferenceSweep, exchange

Pick = tuple[int, float, int]
"""Row, weight, source."""


class ReferenceSampler(Protocol):
    """What every twin can do."""

    def pick(self, count: int) -> list[Pick]:
        """Choose live rows."""
        ...

    def added(self, serial: int) -> None:
        """Take note of a new row."""
        ...

    def update(self, row: int, error: float) -> None:
        """Take note of the new absolute TD error of a live row."""
        ...


def reference_of(
    config: Sampler, store: ReferenceStore, graph: ReferenceGraph, generator: np.random.Generator
) -> ReferenceSampler:
    """Return the twin of the live sampler that `config` would build."""
    if isinstance(config, Uniform):
        return ReferenceUniform(store, generator)
    if isinstance(config, Prioritized):
        return ReferencePrioritized(config, store, generator)
    if isinstance(config, EpisodicBackward):
        return ReferenceEpisodicBackward(config, store, generator)
    if isinstance(config, Topological):
        return ReferenceTopological(config, store, graph, generator)
    if isinstance(config, Mixture):
        return ReferenceMixture(config, store, graph, generator)
    raise TypeError(f"{type(config).__name__} has no plain-Python twin")


class _Memoryless:
    """A sampler to which new rows and priorities mean nothing."""

    def __init__(self, store: ReferenceStore, generator: np.random.Generator) -> None:
        self.store = store
        self.generator = generator

    def word(self) -> int:
        """Draw the word of one call."""
        return int(random_word(self.generator))

    def added(self, serial: int) -> None:
        """Do nothing."""

    def update(self, row: int, error: float) -> None:
        """Do nothing."""

    def filled_up(self, rows: list[int], count: int, fallback: str) -> list[Pick]:
        """Return the rows as picks; what is missing comes from the fallback."""
        if len(rows) < count:
            if fallback == "error":
                raise RuntimeError("fallback='error' was asked for")
            rows = rows + draw_uniform(self.word(), self.store, count - len(rows))
        return [(row, 1.0, 0) for row in rows]


class ReferenceUniform(_Memoryless):
    """Every live row with the same chance."""

    def pick(self, count: int) -> list[Pick]:
        """Choose `count` live rows."""
        return [(row, 1.0, 0) for row in draw_uniform(self.word(), self.store, count)]


class ReferencePrioritized(_Memoryless):
    """A dict of priorities; sums over ranges of slots are worked out anew whenever they are needed."""

    def __init__(self, config: Prioritized, store: ReferenceStore, generator: np.random.Generator) -> None:
        super().__init__(store, generator)
        self.config = config
        self.largest = 1.0
        self.priorities: dict[int, float] = {}

    def added(self, serial: int) -> None:
        """Give a new row the largest priority so far."""
        self.priorities[serial] = self.largest
        self.priorities.pop(serial - self.store.capacity, None)

    def update(self, row: int, error: float) -> None:
        """Set a priority from an absolute TD error."""
        clip = math.inf if self.config.clip is None else self.config.clip
        try:
            priority = min((min(error, clip) + self.config.epsilon) ** self.config.alpha, 1e100)
        except OverflowError:
            priority = 1e100
        self.largest = max(self.largest, priority)
        self.priorities[row] = priority

    @property
    def beta(self) -> float:
        """The exponent of the importance weights."""
        config = self.config
        if config.beta_rows is None:
            return config.beta
        return config.beta + min(self.store.total / config.beta_rows, 1.0) * (config.final_beta - config.beta)

    def pick(self, count: int) -> list[Pick]:
        """Choose `count` live rows in proportion to their priorities."""
        random = SplitMix64(self.word())
        by_slot = {serial % self.store.capacity: serial for serial in self.store.rows}
        span = 8
        while span < self.store.capacity:
            span *= 8
        sums: dict[tuple[int, int], float] = {}

        def total(first: int, span: int) -> float:
            """Add up the priorities of `span` slots: eighths first, then those in pairs, the order of all floats."""
            if (first, span) not in sums:
                if span == 1:
                    sums[first, span] = self.priorities[by_slot[first]] if first in by_slot else 0.0
                else:
                    c = eighths(first, span)
                    sums[first, span] = ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]))
            return sums[first, span]

        def eighths(first: int, span: int) -> list[float]:
            return [total(first + i * span // 8, span // 8) for i in range(8)]

        def descend(first: int, span: int, ticket: float) -> int:
            """Return the slot whose share of the total the ticket falls into."""
            if span == 1:
                return first
            shares = eighths(first, span)
            chosen, passed, prefix = 0, 0.0, 0.0
            for i, share in enumerate(shares):
                prefix += share
                if ticket >= prefix:
                    chosen, passed = i + 1, prefix
            while chosen == 8 or shares[chosen] == 0.0:  # rounding carried the ticket past the last share
                chosen -= 1
                passed -= shares[chosen]
            return descend(first + chosen * span // 8, span // 8, ticket - passed)

        rows = []
        for i in range(count):
            unit = random.unit()
            if self.config.stratified:
                unit = (i + unit) / count
            rows.append(by_slot[descend(0, span, unit * total(0, span))])
        among = self.store.rows if self.config.normalise == "buffer" else rows
        smallest = min(self.priorities[row] for row in among)
        return [(row, float(np.float32((smallest / self.priorities[row]) ** self.beta)), 0) for row in rows]


class ReferenceEpisodicBackward(_Memoryless):
    """Walks back through one episode after another."""

    def __init__(self, config: EpisodicBackward, store: ReferenceStore, generator: np.random.Generator) -> None:
        super().__init__(store, generator)
        self.config = config
        self.next: Row | None = None

    def _draw_episode(self, random: SplitMix64) -> Episode | None:
        def eligible(episode: Episode) -> bool:
            if episode.state == TRUNCATED:
                return self.config.timeouts
            return episode.state != RUNNING or self.config.running

        episodes = self.store.live_episodes
        for _ in range(64):
            episode = episodes[random.below(len(episodes))]
            if eligible(episode):
                return episode
        rare = [episode for episode in episodes if eligible(episode)]
        return rare[random.below(len(rare))] if rare else None

    def pick(self, count: int) -> list[Pick]:
        """Choose `count` live rows."""
        random = SplitMix64(self.word())
        rows: list[int] = []
        while len(rows) < count:
            if self.next is None or self.next.serial not in self.store.rows:
                episode = self._draw_episode(random)
                if episode is None:
                    self.next = None
                    break
                self.next = episode.rows[-1]
            rows.append(self.next.serial)
            place = self.next.episode.rows.index(self.next)
            self.next = self.next.episode.rows[place - 1] if place > 0 else None
        return self.filled_up(rows, count, self.config.fallback)


class ReferenceTopological(_Memoryless):
    """Algorithm 1, with an optional shuffling window behind it."""

    def __init__(
        self, config: Topological, store: ReferenceStore, graph: ReferenceGraph, generator: np.random.Generator
    ) -> None:
        super().__init__(store, generator)
        self.config = config
        word = self.word()
        self.sweep = ReferenceSweep(
            store,
            graph,
            roots=config.roots,
            predecessors=config.predecessors,
            kappa=config.start.kappa if isinstance(config.start, PseudoTerminals) else None,
            candidates=config.start.candidates if isinstance(config.start, Terminals) else 1,
            separate_trees=config.trees == "separate",
            by_visits=config.draw == "visits",
            stitch=config.stitch,
            word=word,
        )
        self.window: list[int] = []
        self.shuffle_generator = named_generator(word, "shuffle")

    def pick(self, count: int) -> list[Pick]:
        """Choose `count` live rows."""
        picks = self.filled_up(self.sweep.advance(count), count, self.config.fallback)
        if not self.config.shuffle:
            return picks
        while len(self.window) < self.config.shuffle:
            more = self.sweep.advance(self.config.shuffle - len(self.window))
            if not more:
                break
            self.window += more
        word = int(random_word(self.shuffle_generator))
        rows = exchange(word, self.store, self.window, [row for row, _, _ in picks])
        return [(row, 1.0, 0) for row in rows]


class ReferenceMixture(_Memoryless):
    """Several twins, and what each is owed."""

    def __init__(
        self, config: Mixture, store: ReferenceStore, graph: ReferenceGraph, generator: np.random.Generator
    ) -> None:
        super().__init__(store, generator)
        root = self.word()
        self.shares = [share for share, _ in config.parts]
        self.owed = [0.0 for _ in config.parts]
        self.parts = [
            reference_of(part, store, graph, named_generator(root, "mixture", str(index)))
            for index, (_, part) in enumerate(config.parts)
        ]

    def split(self, count: int) -> list[int]:
        """Return how many rows each part gives: what it is due, rounded down, and the rest to those owed most."""
        due = [share * count + owed for share, owed in zip(self.shares, self.owed, strict=True)]
        counts = [max(math.floor(amount + 1e-9), 0) for amount in due]
        order: list[Any] = sorted(range(len(due)), key=lambda part: counts[part] - due[part])
        missing = count - sum(counts)
        if missing >= 0:
            for part in order[:missing]:
                counts[part] += 1
        else:  # those owed least give way
            for part in [part for part in order if counts[part] > 0][missing:]:
                counts[part] -= 1
        self.owed = [amount - given for amount, given in zip(due, counts, strict=True)]
        return counts

    def pick(self, count: int) -> list[Pick]:
        """Choose `count` live rows, part after part."""
        return [
            (row, weight, index)
            for index, (part, share) in enumerate(zip(self.parts, self.split(count), strict=True))
            if share
            for row, weight, _ in part.pick(share)
        ]

    def added(self, serial: int) -> None:
        """Tell every part."""
        for part in self.parts:
            part.added(serial)

    def update(self, row: int, error: float) -> None:
        """Tell every part."""
        for part in self.parts:
            part.update(row, error)
