"""Stable-Baselines3's DQN, trained by its own loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from backsweep import Mixture, Prioritized, Topological, Uniform
from backsweep.integrations.stable_baselines3 import ReplayBuffer, ReplayCallback, TopologicalDQN
from benchmarks.learning import corridor
from benchmarks.learning.corridor import Corridor, Run, solves


class FirstSolved(BaseCallback):
    """Plays an episode greedily every 250 steps, and notes whether it succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.solved: list[bool] = []

    def _on_step(self) -> bool:
        if self.n_calls % corridor.EVERY == 0:
            self.solved.append(solves(self._values))
        return True

    def _values(self, observation: Any) -> Any:
        policy: Any = self.model.policy
        tensor, _ = policy.obs_to_tensor(observation)
        return policy.q_net(tensor)[0].detach().numpy()


def run(kind: Any, sampler: dict[str, Any], with_callback: bool, seed: int, steps: int) -> list[bool]:
    """Train once."""
    options: dict[str, Any] = {}
    if kind is DQN and sampler:
        options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": sampler}
    model = kind(
        "MlpPolicy",
        Corridor(),
        learning_rate=corridor.LEARNING_RATE,
        gamma=corridor.GAMMA,
        buffer_size=corridor.ROWS,
        learning_starts=corridor.WARMUP,
        batch_size=corridor.BATCH,
        train_freq=corridor.TRAIN_EVERY,
        target_update_interval=corridor.TARGET_UPDATES * corridor.TRAIN_EVERY,
        exploration_fraction=corridor.EXPLORATION,
        exploration_final_eps=corridor.LAST_EPSILON,
        policy_kwargs={"net_arch": list(corridor.HIDDEN)},
        device="cpu",
        seed=seed,
        **options,
    )
    watch = FirstSolved()
    model.learn(steps, callback=[watch, ReplayCallback(stats_every=0)] if with_callback else watch)
    return watch.solved


def variants() -> dict[str, Run]:
    """Return how to train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    return {
        "DQN, its own buffer": partial(run, DQN, {}, False),
        "DQN, backsweep, Uniform": partial(run, DQN, {"sampler": Uniform()}, False),
        "DQN, backsweep, Prioritized": partial(run, DQN, {"sampler": Prioritized()}, True),
        "DQN, backsweep, half sweep, half Prioritized": partial(run, DQN, {"sampler": both}, True),
        "TopologicalDQN": partial(run, TopologicalDQN, {}, False),
    }
