"""Tianshou's DQN: its buffers, its update; steps are taken by the common loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch
from tianshou.data import PrioritizedReplayBuffer as TheirPrioritized
from tianshou.data import ReplayBuffer as Theirs
from tianshou.utils.net.common import Net
from tianshou.utils.torch_utils import policy_within_training_step

from backsweep import Mixture, Prioritized, Topological, Uniform
from backsweep.integrations.tianshou import DQN, ReplayBuffer
from backsweep.samplers import Sampler
from benchmarks.learning import corridor
from benchmarks.learning.corridor import LENGTH, Corridor, Run, train


class Agent:
    """A buffer and a learner."""

    def __init__(self, buffer: Any, seed: int) -> None:
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - their buffers draw from it
        self._buffer = buffer
        self._net = Net(state_shape=LENGTH, action_shape=4, hidden_sizes=list(corridor.HIDDEN))
        self._policy = DiscreteQLearningPolicy(model=self._net, action_space=Corridor().action_space)
        self._algorithm = DQN(
            policy=self._policy,
            optim=AdamOptimizerFactory(lr=corridor.LEARNING_RATE),
            gamma=corridor.GAMMA,
            target_update_freq=corridor.TARGET_UPDATES,
            huber_loss_delta=1.0,
        )

    def values(self, observation: NDArray[np.float32]) -> NDArray[Any]:
        """Return the value of each action."""
        with torch.no_grad():
            found: NDArray[Any] = self._net(observation[None])[0][0].numpy()
        return found

    def add(self, step: tuple[Any, int, float, Any, bool, bool]) -> None:
        """Store a step."""
        names = ("obs", "act", "rew", "obs_next", "terminated", "truncated")
        self._buffer.add(Batch(**dict(zip(names, step, strict=True)), info={}))

    def update(self) -> None:
        """Take one step of learning."""
        with policy_within_training_step(self._policy):
            self._algorithm.update(buffer=self._buffer, sample_size=corridor.BATCH)


def run(make: Callable[[int], Any], seed: int, steps: int) -> list[bool]:
    """Train once with the buffer that a seed makes."""
    return train(Agent(make(seed), seed), seed, steps)


def ours(sampler: Sampler) -> Run:
    """Return how to train with rows that a sampler draws."""
    return partial(run, lambda seed: ReplayBuffer(corridor.ROWS, sampler=sampler, seed=seed))


def variants() -> dict[str, Run]:
    """Return how to train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    return {
        "DQN, its own buffer": partial(run, lambda _: Theirs(corridor.ROWS)),
        "DQN, its own prioritized buffer": partial(run, lambda _: TheirPrioritized(corridor.ROWS, alpha=0.6, beta=0.4)),
        "DQN, backsweep, Uniform": ours(Uniform()),
        "DQN, backsweep, Prioritized": ours(Prioritized()),
        "DQN, backsweep, half sweep, half Prioritized": ours(both),
    }
