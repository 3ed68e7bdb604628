"""TorchRL's DQN loss and replay buffer; steps are taken by the common loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import RandomSampler
from torchrl.modules import MLP, QValueActor
from torchrl.objectives import DQNLoss, HardUpdate

from backsweep import Mixture, Prioritized, Topological, Uniform
from backsweep.integrations.torchrl import BacksweepSampler
from backsweep.samplers import Sampler
from benchmarks.learning import corridor
from benchmarks.learning.corridor import LENGTH, Run, train


class Agent:
    """A buffer and a learner."""

    def __init__(self, sampler: Any, seed: int) -> None:
        torch.manual_seed(seed)
        self._buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(corridor.ROWS), sampler=sampler, batch_size=corridor.BATCH
        )
        self._net = MLP(
            in_features=LENGTH, out_features=4, num_cells=list(corridor.HIDDEN), activation_class=torch.nn.ReLU
        )
        actor = QValueActor(self._net, in_keys=["observation"], action_space="categorical")
        self._loss = DQNLoss(
            actor,
            loss_function="smooth_l1",
            delay_value=True,
            double_dqn=True,
            action_space="categorical",
        )
        self._loss.make_value_estimator(gamma=corridor.GAMMA)
        self._target = HardUpdate(self._loss, value_network_update_interval=corridor.TARGET_UPDATES)
        self._optimizer = torch.optim.Adam(self._loss.parameters(), lr=corridor.LEARNING_RATE)

    def values(self, observation: NDArray[np.float32]) -> NDArray[Any]:
        """Return the value of each action."""
        with torch.no_grad():
            found: NDArray[Any] = self._net(torch.from_numpy(observation)).numpy()
        return found

    def add(self, step: tuple[Any, int, float, Any, bool, bool]) -> None:
        """Store a step."""
        now, action, reward, following, terminated, truncated = step
        after = {
            "observation": torch.from_numpy(following),
            "reward": torch.tensor([reward], dtype=torch.float32),
            "terminated": torch.tensor([terminated]),
            "done": torch.tensor([terminated or truncated]),
        }
        self._buffer.add(
            TensorDict({"observation": torch.from_numpy(now), "action": torch.tensor(action), "next": after}, [])
        )

    def update(self) -> None:
        """Take one step of learning."""
        batch = self._buffer.sample()
        self._loss(batch)["loss"].backward()  # it applies "priority_weight" and takes the mean
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._target.step()
        if batch.get("priority_weight", None) is not None:
            batch["td_error"] = batch["td_error"].sqrt()  # the loss writes squared errors
            self._buffer.update_tensordict_priority(batch)


def run(sampler: Sampler | None, seed: int, steps: int) -> list[bool]:
    """Train once."""
    chosen = RandomSampler() if sampler is None else BacksweepSampler(corridor.ROWS, sampler, lanes=1, seed=seed)
    return train(Agent(chosen, seed), seed, steps)


def variants() -> dict[str, Run]:
    """Return how to train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    return {
        "DQN loss, its own sampler": partial(run, None),
        "DQN loss, backsweep, Uniform": partial(run, Uniform()),
        "DQN loss, backsweep, Prioritized": partial(run, Prioritized()),
        "DQN loss, backsweep, half sweep, half Prioritized": partial(run, both),
    }
