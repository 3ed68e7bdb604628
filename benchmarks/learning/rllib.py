"""RLlib's DQN (new API stack), trained by its own loop without other processes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

from backsweep import Mixture, Prioritized, Topological, Uniform
from backsweep.integrations.rllib import DQN
from backsweep.samplers import Sampler
from benchmarks.learning import corridor
from benchmarks.learning.corridor import Corridor, Run, solves


def run(sampler: Sampler | None, seed: int, steps: int) -> list[bool]:
    """Train once."""
    np.random.seed(seed)  # noqa: NPY002 - their buffer draws from it
    register_env("corridor", lambda _: Corridor())
    ours = {"type": "backsweep.integrations.rllib.EpisodeReplay", "sampler": sampler, "lanes": 1, "seed": seed}
    theirs = {"type": "PrioritizedEpisodeReplayBuffer", "alpha": 0.6, "beta": 0.4}
    untyped: Any = DQNConfig
    config = (
        untyped(algo_class=DQN)
        .environment("corridor")
        .env_runners(num_env_runners=0, rollout_fragment_length=corridor.TRAIN_EVERY)
        .training(
            replay_buffer_config={**(theirs if sampler is None else ours), "capacity": corridor.ROWS},
            lr=corridor.LEARNING_RATE,
            gamma=corridor.GAMMA,
            train_batch_size=corridor.BATCH,
            num_steps_sampled_before_learning_starts=corridor.WARMUP,
            target_network_update_freq=corridor.TARGET_UPDATES * corridor.TRAIN_EVERY,
            epsilon=[(0, corridor.FIRST_EPSILON), (int(corridor.EXPLORATION * steps), corridor.LAST_EPSILON)],
            dueling=False,
            double_q=True,
        )
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=list(corridor.HIDDEN), fcnet_activation="relu", head_fcnet_hiddens=[]
            )
        )
        .reporting(min_sample_timesteps_per_iteration=corridor.EVERY, min_time_s_per_iteration=0)
        .debugging(seed=seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    solved = []
    for _ in range(steps // corridor.EVERY):
        algorithm.train()
        module: Any = algorithm.get_module()

        def values(observation: Any, module: Any = module) -> Any:
            with torch.no_grad():
                found = module.compute_q_values({"obs": torch.from_numpy(observation[None])})
            return found["qf_preds"][0].numpy()

        solved.append(solves(values))
    algorithm.stop()
    return solved


def variants() -> dict[str, Run]:
    """Return how to train each."""
    both = Mixture([(0.5, Topological(roots=8, predecessors=1)), (0.5, Prioritized())])
    return {
        "DQN, its own prioritized buffer": partial(run, None),
        "DQN, backsweep, Uniform": partial(run, Uniform()),
        "DQN, backsweep, Prioritized": partial(run, Prioritized()),
        "DQN, backsweep, half sweep, half Prioritized": partial(run, both),
    }
