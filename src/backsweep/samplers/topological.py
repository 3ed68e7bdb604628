"""Topological experience replay: batches from a reverse sweep over the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int, need_choice, need_fields, need_flags
from backsweep.graph.graph import Graph, GraphDraws
from backsweep.jit.random_streams import generator_state, named_generator, random_word, restore_generator
from backsweep.samplers.base import Experience, LiveSampler, SamplerState
from backsweep.samplers.uniform import fill_up
from backsweep.snapshot.contents import need, need_within
from backsweep.store.store import Store
from backsweep.sweep import window_kernels
from backsweep.sweep.sweep import PseudoTerminals, Sweep, Terminals
from backsweep.types import Picks, Rows

MOST_ROOTS = 2**31 - 1
LARGEST_WINDOW = 100_000_000


@dataclass(frozen=True)
class Topological:
    """Reverse breadth-first search from terminal states, so that successors come before their predecessors.

    The sweep resumes where the last batch stopped. When nothing is left to expand it restarts from new roots.
    """

    roots: int = 8
    """The number of vertices where a sweep starts."""
    predecessors: int | None = 1
    """The largest number of predecessor edges followed at a vertex, drawn without replacement; None follows all. The
    paper has 3. With 1, sweeps stay near the terminal states and restart soon, and networks learned more on average."""
    start: Terminals | PseudoTerminals = field(default_factory=Terminals)
    """Where sweeps start: terminal vertices, or vertices with a high accumulated reward."""
    trees: Literal["shared", "separate"] = "shared"
    """One queue and visited set for all roots (Algorithm 1), or one root after another, each with its own."""
    draw: Literal["uniform", "visits"] = "uniform"
    """Draw predecessors uniformly, or in proportion to the stored transitions on the edge, for stochastic tasks."""
    stitch: bool = True
    """Whether the search may cross from one episode to another in a shared state. False is an ablation: from the
    roots on, each branch stays in its episode."""
    shuffle: int = 0
    """Size of a window in which the sweep's rows are shuffled. 0 keeps the order; a large window keeps the
    rows and loses the order. Meant as an ablation, but networks learned MiniGrid faster with it (docs/results.md), so
    try both."""
    fallback: Literal["uniform", "error"] = "uniform"
    """What to do while there are no roots (or none with predecessors): return uniform rows, or raise an error."""

    needs_graph = True

    def __post_init__(self) -> None:
        whole, window = "an int of 1 or more", f"0 or the size of a window, at most {LARGEST_WINDOW}"
        need_fields(self, lambda v: is_int(v) and 1 <= v <= MOST_ROOTS, f"an int from 1 to {MOST_ROOTS}", "roots")
        need_fields(self, lambda v: v is None or (is_int(v) and v >= 1), f"{whole}, or None", "predecessors")
        if not isinstance(self.start, (Terminals, PseudoTerminals)):
            raise TypeError(f"Topological: start must be Terminals() or PseudoTerminals(), got {self.start!r}")
        need_fields(self, lambda v: is_int(v) and 0 <= v <= LARGEST_WINDOW, window, "shuffle")
        need_flags(self, "stitch")
        need_choice(self, "trees", "shared", "separate")
        need_choice(self, "draw", "uniform", "visits")
        need_choice(self, "fallback", "uniform", "error")

    @property
    def graph_draws(self) -> GraphDraws:
        """What the sweep draws by weight."""
        temperatures = (float(self.start.kappa),) if isinstance(self.start, PseudoTerminals) else ()
        return GraphDraws(self.draw == "visits", temperatures)

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveTopological:
        """Return the live sampler."""
        return LiveTopological(self, experience, generator)


def new_sweep(config: Topological, store: Store, graph: Graph, seed: np.uint64) -> Sweep:
    """Return a sweep with a sampler's settings that has not begun."""
    return Sweep(
        store,
        graph,
        roots=config.roots,
        predecessors=config.predecessors,
        start=config.start,
        separate_trees=config.trees == "separate",
        by_visits=config.draw == "visits",
        stitch=config.stitch,
        seed=seed,
    )


class LiveTopological(LiveSampler):
    """A sweep in progress."""

    def __init__(self, config: Topological, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        self.config = config
        word = random_word(generator)
        self.sweep = new_sweep(config, experience.store, experience.graph, word)
        self.window = np.zeros(config.shuffle + 1, np.int64)
        self.held = 0
        # The sweep has its own random stream, so that a shuffle does not change its rows. Not a spawned one: how many a
        # generator has spawned is not saved, and `clear` would go on with another one after loading.
        self.shuffle_generator = named_generator(int(word), "shuffle")

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows."""
        row = np.empty(count, np.int64)
        self._pick_rows(row)
        return Picks(row)

    def pick_into(self, row: Rows, weight: NDArray[np.float32]) -> None:
        """Write chosen live rows to the given array."""
        self._pick_rows(row)

    def _pick_rows(self, row: Rows) -> None:
        found = self.sweep.advance_into(row)
        if found < len(row):
            fill_up(
                row,
                found,
                self.config.fallback,
                self,
                "there is no vertex to start a sweep from, or none that was drawn has predecessors",
            )
        if self.config.shuffle:
            row[:] = self._shuffled(row)

    def _shuffled(self, incoming: Rows) -> Rows:
        while self.held < self.config.shuffle:
            more = self.sweep.advance(self.config.shuffle - self.held)
            if not len(more):
                break
            self.window[self.held : self.held + len(more)] = more
            self.held += len(more)
        out = np.empty_like(incoming)
        seed = random_word(self.shuffle_generator)
        self.held = window_kernels.exchange(seed, self.experience.oldest, self.window, self.held, incoming, out)
        return out

    def statistics(self) -> dict[str, float]:
        """Return the sweep's statistics."""
        return {**self.sweep.statistics()}

    @property
    def nbytes(self) -> int:
        return self.sweep.nbytes + self.window.nbytes

    def state(self) -> SamplerState:
        """Return the position of the sweep."""
        state = super().state()
        state.arrays = {f"sweep_{name}": array for name, array in self.sweep.arrays().items()}
        state.arrays["window"] = self.window[: self.held]
        state.values["shuffle_generator"] = generator_state(self.shuffle_generator)
        return state

    def load_state(self, state: SamplerState) -> None:
        """Resume in the middle of a sweep."""
        super().load_state(state)
        restore_generator(self.shuffle_generator, state.values["shuffle_generator"])
        self.sweep.load(
            {name.removeprefix("sweep_"): array for name, array in state.arrays.items() if name != "window"}
        )
        window = state.arrays["window"]
        fits = window.dtype == np.int64 and window.ndim == 1 and len(window) <= self.config.shuffle
        need(fits, "the window of the shuffle is too long")
        need_within(window, 0, self.experience.total, "rows in the window")
        self.held = len(window)
        self.window[: self.held] = window
