"""The seeds of lanes, derived from one root seed, and their streams.

    root seed ──SeedSequence(seed, spawn_key=(lane,))──> lane seed ──PCG64──> first word of the lane's SplitMix64 stream

A lane seed is an ordinary int: given to `reset` of a single environment, or as the only entry of a list of seeds, it
replays that lane alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backsweep.jit.random_streams import checked_seed


def lane_seeds(seed: int, num_lanes: int) -> list[int]:
    """Return the seed of each lane; lane i's depends on `seed` and i only, never on the number of lanes."""
    root = checked_seed(seed)
    return [
        int(np.random.SeedSequence(entropy=root, spawn_key=(lane,)).generate_state(1, np.uint64)[0] >> np.uint64(1))
        for lane in range(num_lanes)
    ]


def stream_word(lane_seed: int) -> np.uint64:
    """Return the first state of the stream of `lane_seed`."""
    return np.uint64(np.random.PCG64(np.random.SeedSequence(lane_seed)).random_raw())


def fresh_seed() -> int:
    """Return a seed from the operating system, for environments that were given none."""
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy & ((1 << 63) - 1)


def seeds_for_reset(seed: int | Sequence[int | None] | None, num_lanes: int, default: int | None) -> list[int | None]:
    """Return one seed per lane for a reset, None for a lane that keeps its stream.

    `default` is the root seed of lanes without a seed; it is None once the lanes have their streams.
    """
    defaults: list[int | None] = [None] * num_lanes if default is None else list(lane_seeds(default, num_lanes))
    if seed is None:
        return defaults
    if isinstance(seed, (int, np.integer)):
        return list(lane_seeds(checked_seed(seed), num_lanes))
    entries = list(seed)
    if len(entries) != num_lanes:
        raise ValueError(f"seed must be an int or hold one entry per lane ({num_lanes}), got {len(entries)} entries")
    return [defaults[lane] if entry is None else checked_seed(entry) for lane, entry in enumerate(entries)]
