"""C21: whether batch mixing draws every stored transition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.replay import Replay
from backsweep.samplers import Mixture, Prioritized, Sampler, Topological, Uniform

SHARES = (0.0, 0.1, 0.5)
MIXED_IN = ("per", "uniform")
BATCH = 64
SURE = 1e-6
STATES, TRAP = 16, 30


def walk(seed: int, steps: int, sampler: Sampler) -> Replay:
    """Return a replay of random walks, half of which enter a trap from which no terminal state can be reached.

    States 0 to 15 are a chain with a terminal state at its right end and a trap of 30 states at its left end. Walks
    start in the middle of the chain; in the trap they go on until they are truncated.
    """
    generator = named_generator(seed, "coverage")
    replay = Replay(
        gym.spaces.Discrete(STATES + TRAP + 1), gym.spaces.Discrete(2), capacity=steps, sampler=sampler, seed=seed
    )
    state, length = STATES // 2, 0
    for _ in range(steps):
        action, length = int(generator.integers(2)), length + 1
        if state >= STATES:
            after = STATES + int(generator.integers(TRAP))
        else:
            after = STATES + TRAP if state == STATES - 1 and action == 0 else state + (1 if action == 0 else -1)
            after = STATES if after < 0 else after
        ended = after == STATES + TRAP
        cut = not ended and length == 200
        replay.add(state, action, float(ended), after, ended, cut)
        state, length = (STATES // 2, 0) if ended or cut else (after, length)
    return replay


def most_batches(rows: int, share: float) -> int:
    """Return the number of batches after which uniform sampling has missed a row with probability 1e-6 at most.

    n draws miss a given row with probability (1 - 1/rows)^n, and there are `rows` of them.
    """
    return math.ceil(rows * math.log(rows / SURE) / (share * BATCH))


def batches_to_cover(seed: int, steps: int, share: float, mixed_in: str) -> dict[str, Any]:
    """Return how many batches it takes until every row has been drawn, and how many rows never were."""
    sweep, other = Topological(roots=8, predecessors=3), Prioritized() if mixed_in == "per" else Uniform()
    sampler: Sampler = Mixture([(1.0 - share, sweep), (share, other)]) if share else sweep
    replay = walk(seed, steps, sampler)
    errors = named_generator(seed, "errors")
    drawn = np.zeros(steps, np.bool_)
    batches, limit = 0, most_batches(steps, share or min(filter(None, SHARES)))
    while not drawn.all() and batches < limit:
        batch = replay.sample(BATCH)
        drawn[batch.row] = True
        if share and mixed_in == "per":
            # The worst case for PER: a drawn row's error becomes almost 0 and its priority minimal.
            replay.update_priorities(batch.row, np.zeros(len(batch)) + 1e-6 * errors.random(len(batch)))
        batches += 1
    return {
        "kind": "coverage",
        "seed": seed,
        "eta": share,
        "mixed_in": mixed_in if share else "nothing",
        "rows": steps,
        "batch": BATCH,
        "batches": batches,
        "never_drawn": int((~drawn).sum()),
        "limit": limit,
    }


def all_coverage(seed: int, *, steps: int = 5_000) -> Iterator[dict[str, Any]]:
    """Yield a record for every share and every sampler that is mixed in."""
    for share in SHARES:
        for mixed_in in MIXED_IN if share else MIXED_IN[:1]:
            yield batches_to_cover(seed, steps, share, mixed_in)
