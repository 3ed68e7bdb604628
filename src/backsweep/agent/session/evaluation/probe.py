"""A fixed set of states, the same for every method and seed, on which average values can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.tasks.environments import Environments

STRIDE = 7  # steps between two probe states: neighbours are almost equal


def probe_states(envs: Environments, size: int) -> NDArray[Any]:
    """Return `size` observations from random play; they depend only on the environments and their seed."""
    generator = named_generator(0, "probe")
    observations, taken, count, step = envs.reset(), [], 0, 0
    while count < size:
        if step % STRIDE == 0:
            taken.append(observations.copy())
            count += len(observations)
        actions = generator.integers(envs.num_actions, size=envs.num_envs)
        observations = envs.step(actions).observations
        step += 1
    return np.concatenate(taken)[:size]
