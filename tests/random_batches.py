"""Random batches for tests of learners."""

from __future__ import annotations

import numpy as np

from backsweep.agent.learner.networks import Network
from backsweep.jit.random_streams import named_generator
from backsweep.types import Batch


def random_batch(network: Network, seed: int, size: int = 8) -> Batch:
    """Return a batch whose observations fit a network; the same seed gives the same batch."""
    generator = named_generator(seed, "batch")

    def observations() -> np.ndarray:
        if network.form == "image":
            return generator.integers(0, 256, (size, *network.input_shape), np.uint8)
        if network.form == "table":
            return generator.integers(0, network.input_shape[0], size)
        return generator.normal(size=(size, *network.input_shape)).astype(np.float32)

    terminated = generator.random(size) < 0.3
    return Batch(
        observation=observations(),
        action=generator.integers(0, network.actions, size),
        reward=generator.normal(size=size).astype(np.float32),
        next_observation=observations(),
        terminated=terminated,
        discount=np.where(terminated, 0, 0.99).astype(np.float32),
        weight=generator.random(size).astype(np.float32),
        row=np.arange(size),
        source=np.zeros(size, np.int64),
        steps=np.ones(size, np.int64),
    )
