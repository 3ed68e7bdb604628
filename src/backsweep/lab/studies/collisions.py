"""C16: whether two different observations of a task ever share a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import xxhash
from numpy.typing import NDArray

from backsweep.encoding import RandomProjection
from backsweep.jit.random_streams import named_generator
from backsweep.tasks import TASKS, exact

MINIGRID = tuple(task.id for task in TASKS.values() if task.family == "minigrid")
DIMENSIONS = (1, 2, 3, 8, 32)
CHUNK = 4096


def count_collisions(
    seed: int, *, tasks: Sequence[str] = MINIGRID, dimensions: Sequence[int] = DIMENSIONS
) -> Iterator[dict[str, Any]]:
    """Yield one record per task and dimension, with a seed's matrices: all states of the task are encoded.

    States that look the same are one observation; a collision is a pair of different observations with one key.
    """
    for task in tasks:
        yield from _collisions(task, seed, dimensions)


def _collisions(task: str, seed: int, dimensions: Sequence[int]) -> Iterator[dict[str, Any]]:
    states = exact(task)
    total = states.num_states + states.num_terminal
    chunks = [np.arange(first, min(first + CHUNK, total)) for first in range(0, total, CHUNK)]
    space = gym.spaces.Box(0, 255, states.observations(chunks[0][:1]).shape[1:], np.uint8)
    encoders = {dim: RandomProjection(dim=dim).build(space, named_generator(seed, "encoder")) for dim in dimensions}
    keys: dict[int, list[NDArray[np.int64]]] = {dim: [] for dim in encoders}
    looks: list[bytes] = []
    for chunk in chunks:
        observations = states.observations(chunk)
        looks.extend(xxhash.xxh3_128_digest(picture.tobytes()) for picture in observations)
        for dim, encoder in encoders.items():
            keys[dim].append(encoder.encode(observations))
    _, first_of = np.unique(np.array(looks, dtype="V16"), return_index=True)
    for dim, batches in keys.items():
        distinct = np.unique(np.concatenate(batches)[first_of], axis=0)
        yield {
            "kind": "collisions",
            "task": task,
            "dimension": dim,
            "seed": seed,
            "states": total,
            "observations": len(first_of),
            "keys": len(distinct),
            "collisions": len(first_of) - len(distinct),
        }
