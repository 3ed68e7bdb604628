"""Whether learning is as fast with backsweep's buffer as with a framework's own: same algorithm, seeds and budget.

python -m benchmarks.integrations_learning [--steps 6000] [--seeds 3] [--out FILE]

The task is a corridor in which every place has one right action and only the end pays: what is learned has to travel
from the end to the start, so it is the replay that matters.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from backsweep import Mixture, Prioritized, Topological, Uniform
from backsweep.integrations.stable_baselines3 import ReplayBuffer, ReplayCallback, TopologicalDQN
from benchmarks.machine import facts

LENGTH, LIMIT = 12, 60


class Corridor(gym.Env[Any, Any]):
    """A corridor of 12 places; one of four actions leads on, the others lead nowhere, and only the end pays."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (LENGTH,), np.float32)
        self.action_space = gym.spaces.Discrete(4)

    def _look(self) -> Any:
        observation = np.zeros(LENGTH, np.float32)
        observation[self._place] = 1
        return observation

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Go to the start."""
        super().reset(seed=seed)
        self._place, self._time = 0, 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        """Move on with the right action."""
        right = (self._place * 7 + 3) % 4
        self._place += int(action == right)
        self._time += 1
        ended = self._place == LENGTH - 1
        return self._look(), float(ended), ended, not ended and self._time >= LIMIT, {}


class FirstSolved(BaseCallback):
    """Plays an episode greedily every 250 steps, and notes when it first succeeds and how often."""

    def __init__(self) -> None:
        super().__init__()
        self.solved: list[bool] = []

    def _on_step(self) -> bool:
        if self.n_calls % 250 == 0:
            env = Corridor()
            observation, _ = env.reset()
            ended = truncated = False
            while not ended and not truncated:
                action, _ = self.model.predict(observation, deterministic=True)
                observation, _, ended, truncated, _ = env.step(int(action))
            self.solved.append(ended)
        return True


def variants() -> dict[str, Any]:
    """Return how to make and train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    return {
        "DQN, its own buffer": (DQN, {}, False),
        "DQN, backsweep, Uniform": (DQN, {"sampler": Uniform()}, False),
        "DQN, backsweep, Prioritized": (DQN, {"sampler": Prioritized()}, True),
        "DQN, backsweep, half sweep, half Prioritized": (DQN, {"sampler": both}, True),
        "TopologicalDQN": (TopologicalDQN, {}, False),
    }


def run(kind: Any, sampler: dict[str, Any], with_callback: bool, seed: int, steps: int) -> list[bool]:
    """Train once; return whether the greedy policy solved the task every 250 steps."""
    options: dict[str, Any] = {}
    if kind is DQN and sampler:
        options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": sampler}
    model = kind(
        "MlpPolicy",
        Corridor(),
        learning_rate=1e-3,
        gamma=0.9,  # with more, a wasted step costs too little for any of them to notice
        buffer_size=50_000,
        learning_starts=500,
        batch_size=64,
        train_freq=2,
        target_update_interval=50,
        exploration_fraction=0.8,
        exploration_final_eps=0.1,
        policy_kwargs={"net_arch": [64, 64]},
        device="cpu",
        seed=seed,
        **options,
    )
    watch = FirstSolved()
    model.learn(steps, callback=[watch, ReplayCallback(stats_every=0)] if with_callback else watch)
    return watch.solved


def main() -> None:
    """Train all variants with all seeds, print a table and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    print("| | steps until first solved, by seed | share of evaluations solved |")
    print("| --- | --- | --- |")
    for name, (kind, sampler, with_callback) in variants().items():
        solved = [run(kind, sampler, with_callback, seed, args.steps) for seed in range(args.seeds)]
        first = [250 * (each.index(True) + 1) if True in each else None for each in solved]
        share = float(np.mean(solved))
        results[name] = {"first_solved": first, "share_solved": share}
        shown = ", ".join("never" if each is None else f"{each:,}" for each in first)
        print(f"| {name} | {shown} | {share:.2f} |", flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps({"machine": facts(), "steps": args.steps, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
