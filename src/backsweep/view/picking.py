"""What the sampler would draw from a replay, and how a sweep visits it, without changing its state."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from backsweep.graph.distances import Indices
from backsweep.replay import Replay
from backsweep.samplers import Mixture, Sampler, Topological
from backsweep.samplers.topological import new_sweep
from backsweep.view.facts import Facts, machinery_with_graph

MOST_DRAWS = 400_000
DRAWS_PER_ROW = 4
DRAW_BATCH = 256
SWEEP_BATCH = 64
MOST_BATCHES = 4_000
SEED = np.uint64(20)


def count_draws(replay: Replay, facts: Facts) -> Indices:
    """Return how often the sampler draws a transition of each state, in several draws per row.

    The sampler's state is restored.
    """
    sampler, oldest = replay.machinery.sampler, replay.oldest
    draws = np.zeros(len(facts), np.int64)
    if not len(replay):
        return draws
    before = copy.deepcopy(sampler.state())
    try:
        for _ in range(-(-min(DRAWS_PER_ROW * len(replay), MOST_DRAWS) // DRAW_BATCH)):
            rows = sampler.pick(min(DRAW_BATCH, replay.capacity)).row
            draws += np.bincount(facts.row_source[rows - oldest], minlength=len(facts))
    finally:
        sampler.load_state(before)
    return draws


def topological_part(sampler: Sampler) -> Topological | None:
    """Return the `Topological` sampler itself or in a mixture; None if there is none."""
    if isinstance(sampler, Mixture):
        parts = (topological_part(part) for _, part in sampler.parts)
        return next((part for part in parts if part is not None), None)
    return sampler if isinstance(sampler, Topological) else None


class Played(NamedTuple):
    """Sweeps, batch by batch."""

    batches: list[Indices]
    """The states whose transitions are in each batch, in order: successors come before a state."""
    sweep: list[int]
    """The number of the sweep that each batch ended in, from 1."""


def play_sweeps(replay: Replay, facts: Facts) -> Played:
    """Return sweeps over the current graph, about two transitions per edge in all.

    They are those of the replay's sampler, or the paper's if it has none; without ends there are none.
    """
    config = topological_part(replay.sampler) or Topological(predecessors=3)
    machinery = machinery_with_graph(replay)
    assert machinery.graph is not None
    sweep = new_sweep(config, machinery.store, machinery.graph, SEED)
    batches: list[Indices] = []
    numbers: list[int] = []
    enough = min(MOST_BATCHES, -(-2 * len(facts.source) // SWEEP_BATCH))
    while len(batches) < enough:
        rows = sweep.advance(SWEEP_BATCH) - replay.oldest
        if len(rows):
            batches.append(facts.row_source[rows])
            numbers.append(sweep.statistics()["sweep_restarts"])
        if len(rows) < SWEEP_BATCH:
            break
    return Played(batches, numbers)
