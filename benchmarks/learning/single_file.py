"""Double DQN in one file, as in `examples/dqn_single_file.py`; steps are taken by the common loop.

The plain script has the buffer that such scripts use, Stable-Baselines3's.
"""

from __future__ import annotations

import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological, Uniform
from backsweep.samplers import Sampler
from benchmarks.learning import corridor
from benchmarks.learning.corridor import Corridor, Run, train


class Learner:
    """Networks, and one step of double DQN."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        widths = (corridor.LENGTH, *corridor.HIDDEN)
        layers = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
        self._net = nn.Sequential(*layers, nn.Linear(widths[-1], 4))
        self._target = copy.deepcopy(self._net)
        self._optimizer = torch.optim.Adam(self._net.parameters(), lr=corridor.LEARNING_RATE)
        self._updates = 0

    @torch.no_grad()
    def values(self, observation: NDArray[np.float32]) -> NDArray[Any]:
        """Return the value of each action."""
        found: NDArray[Any] = self._net(torch.from_numpy(observation)).numpy()
        return found

    @torch.no_grad()
    def following(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the target network's value of the action that the network prefers."""
        best = self._net(observations).argmax(dim=1, keepdim=True)
        found: torch.Tensor = self._target(observations).gather(1, best).squeeze(1)
        return found

    def learn(
        self, observation: torch.Tensor, action: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | float
    ) -> torch.Tensor:
        """Take one step; return the errors."""
        value = self._net(observation).gather(1, action.reshape(-1, 1)).squeeze(1)
        loss: Any = (weight * nn.functional.smooth_l1_loss(value, target, reduction="none")).mean()
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        errors: torch.Tensor = (target - value).detach()
        return errors

    def copied(self) -> bool:
        """Copy the target network if it is time, and return whether it was."""
        self._updates += 1
        if self._updates % corridor.TARGET_UPDATES:
            return False
        self._target.load_state_dict(self._net.state_dict())
        return True

    @torch.no_grad()
    def all_values(self, observations: NDArray[np.float32]) -> NDArray[Any]:
        """Return the target network's values, for planning."""
        found: NDArray[Any] = self._target(torch.as_tensor(observations)).numpy()
        return found


class Plain(Learner):
    """The plain script."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        np.random.seed(seed)  # noqa: NPY002 - their buffer draws from it
        env = Corridor()
        self._replay = ReplayBuffer(corridor.ROWS, env.observation_space, env.action_space, device="cpu")

    def add(self, step: tuple[Any, int, float, Any, bool, bool]) -> None:
        """Store a step."""
        now, action, reward, following, terminated, truncated = step
        infos = [{"TimeLimit.truncated": truncated}]
        self._replay.add(
            now, following, np.array([action]), np.array([reward]), np.array([terminated or truncated]), infos
        )

    def update(self) -> None:
        """Take one step of learning."""
        batch = self._replay.sample(corridor.BATCH)
        alive = 1 - batch.dones.flatten()
        target = batch.rewards.flatten() + alive * corridor.GAMMA * self.following(batch.next_observations)
        self.learn(batch.observations, batch.actions, target, 1.0)
        self.copied()


class Changed(Learner):
    """The script with a replay of backsweep."""

    def __init__(self, sampler: Sampler, planned: bool, seed: int) -> None:
        super().__init__(seed)
        env = Corridor()
        values = GraphValues() if planned else None
        self._replay = Replay.for_env(env, corridor.ROWS, sampler, values=values, gamma=corridor.GAMMA, seed=seed)
        self._planned = planned

    def add(self, step: tuple[Any, int, float, Any, bool, bool]) -> None:
        """Store a step."""
        self._replay.add(*step)

    def update(self) -> None:
        """Take one step of learning."""
        batch = self._replay.sample(corridor.BATCH).to_torch()
        target = batch.reward + batch.discount * self.following(batch.next_observation)
        if batch.target is not None:
            target = torch.where(torch.isnan(batch.target), target, batch.target)
        errors = self.learn(batch.observation, batch.action, target, batch.weight)
        self._replay.update_priorities(batch.row, errors)
        if self.copied() and self._planned:
            self._replay.renew_values(self.all_values)


def run(sampler: Sampler | None, planned: bool, seed: int, steps: int) -> list[bool]:
    """Train once."""
    return train(Plain(seed) if sampler is None else Changed(sampler, planned, seed), seed, steps)


def variants() -> dict[str, Run]:
    """Return how to train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    half = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Uniform())])
    return {
        "plain script, Stable-Baselines3's buffer": partial(run, None, False),
        "backsweep, Uniform": partial(run, Uniform(), False),
        "backsweep, Prioritized": partial(run, Prioritized(), False),
        "backsweep, half sweep, half Prioritized": partial(run, both, False),
        "backsweep, graph values": partial(run, half, True),
    }
