"""Properties of the graph of random episodes under an encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import Encoder, Quantized
from backsweep.encoding.exact_bytes import digest_keys
from backsweep.graph.distances import reverse_distances
from backsweep.inspection.play import Play

CELLS = (100, 50, 20, 10, 5)
"""The number of cells into which a grid divides the observed range of each number, finest first."""


@dataclass(frozen=True)
class Measures:
    """Properties of random episodes under one encoder; shares are from 0 to 1."""

    encoder: Encoder
    """Decides which observations are the same state."""
    states: int
    """Different states."""
    repeated: float
    """Share of steps that led to a state seen before."""
    end_states: int
    """Different states in which an episode terminated."""
    reach_end: float
    """Share of episodes from whose first state an end can be reached on the graph."""
    agreement: float
    """Share of steps that led where most steps with the same state and action led; NaN if none was taken twice.
    Low if the environment is random, or if the encoder merges different states."""


def measure(play: Play, encoder: Encoder, keys: NDArray[np.int64]) -> Measures:
    """Return the properties of the graph under one encoder."""
    _, first, state = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    state = state.reshape(-1)  # numpy 2.0 gives it another axis
    source, target, arrival = state[play.moment], state[play.moment + 1], play.moment + 1
    ends = np.unique(target[play.terminated])
    distance = reverse_distances(len(first), source, target, ends)
    return Measures(
        encoder,
        len(first),
        float(np.mean(first[target] < arrival)),
        len(ends),
        float(np.mean(distance[state[play.starts]] >= 0)),
        _agreement(source, play.action, target),
    )


def _agreement(source: NDArray[np.int64], action: NDArray[np.int64], target: NDArray[np.int64]) -> float:
    """Return the share of steps that agree with the most frequent one, among those whose pair was tried twice."""
    _, pair = np.unique(np.stack([source, action]), axis=1, return_inverse=True)
    pair = pair.reshape(-1)
    arcs, times = np.unique(np.stack([pair, target]), axis=1, return_counts=True)
    tried, most = np.bincount(pair), np.zeros(pair.max() + 1, np.int64)
    np.maximum.at(most, arcs[0], times)
    again = tried > 1
    return float(most[again].sum() / tried[again].sum()) if again.any() else float("nan")


def measure_all(play: Play) -> Iterator[Measures]:
    """Yield the properties under every suitable encoder: exact ones, then grids from fine to coarse."""
    for encoder, keys in play.keys.items():
        yield measure(play, encoder, keys)
    if play.numbers is None:
        return
    low, high = np.percentile(play.numbers, [1, 99], axis=0)
    for cells in CELLS:
        grid = Quantized(tuple(_round_step(width / cells) for width in (high - low).tolist()))
        cell = np.floor(play.numbers / np.asarray(grid.step)) + 0.0
        yield measure(play, grid, digest_keys([cell]))


def _round_step(width: float) -> float:
    """Return a width rounded to one digit; 1 for a number that never changed."""
    return float(f"{width:.0e}") if width > 0 else 1.0
