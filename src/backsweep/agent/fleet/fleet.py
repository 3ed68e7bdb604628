"""A fleet: runs that train together, with their networks stacked. A single run is a fleet of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
import torch

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import OTHER_SETTINGS
from backsweep.agent.fleet.loop import Schedule
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.convolutions import Path, fastest_path
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network, network_for
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.rules import TargetRule, common_rule
from backsweep.agent.methods import method_for
from backsweep.replay import Replay

IMAGE_CONVOLUTIONS, IMAGE_LINEAR = ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,)
OWN_FIELDS = (
    *("task", "env", "task_options", "method", "seed", "steps", "exact", "reward_scale"),
    *("gap", "gap_floor", "untried", "cautious", "explore", "refresh", "noise_limit"),
    *("graph_share", "erlam_weight", "backup_depth", "n_step"),
    *("eta", "mix_with", "roots", "root_candidates", "predecessors", "per_beta_fraction"),
)
"""The fields that may differ between the runs of a fleet; methods only if they have the same kind of update."""


class Fleet:
    """Runs and the learner that holds a row for each of them."""

    def __init__(
        self,
        configs: Sequence[RunConfig],
        *,
        device: str = "cpu",
        replays: Sequence[Replay] | None = None,
        convolutions: Path | Literal["auto"] = "patches",
    ) -> None:
        check_same(configs)
        given = [None] * len(configs) if replays is None else list(replays)
        self.runs = [Run(config, replay) for config, replay in zip(configs, given, strict=True)]
        self.shared = configs[0]
        check_same_form(self.runs)
        network = run_network(self.runs[0])
        if convolutions == "auto":
            on_cpu = torch.device(device).type == "cpu"
            convolutions = fastest_path(network, self.shared.batch_size, self.shared.dtype) if on_cpu else "patches"
        self.learner = Learner(
            network,
            shared_rule(configs),
            learner_settings(self.shared, device, convolutions),
            [config.seed for config in configs],
            scales=[run.reward_scale or 1.0 for run in self.runs],
            shares=[run.method.rule.share for run in self.runs],
        )
        self.step = 0
        """Environment steps that every run has taken."""
        self.schedule = Schedule(self.shared)

    def passes(self, interval: int) -> bool:
        """Say whether the last step reached a multiple of `interval`."""
        return self.schedule.passes(self.step, interval)

    def drop(self, gone: Sequence[int]) -> list[Run]:
        """Remove some runs and return them."""
        dropped = [self.runs[index] for index in gone]
        kept = [index for index in range(len(self.runs)) if index not in set(gone)]
        self.runs = [self.runs[index] for index in kept]
        if kept:
            self.learner.keep(kept)
        for run in dropped:
            run.envs.close()
        return dropped


def check_same(configs: Sequence[RunConfig]) -> None:
    """Refuse runs that cannot share a fleet."""
    if not configs:
        raise ValueError("a fleet needs at least one run")
    first = configs[0].to_json()
    for config in configs[1:]:
        other = config.to_json()
        for name in first:
            if name not in OWN_FIELDS and first[name] != other[name]:
                raise ValueError(
                    f"runs of a fleet may differ in {', '.join(OWN_FIELDS)} only, got {name}={first[name]!r} and "
                    f"{other[name]!r}"
                )
    shared_rule(configs)


def shared_rule(configs: Sequence[RunConfig]) -> TargetRule:
    """Return the common update rule of the runs; refuse methods without one."""
    rule = common_rule([method_for(config).rule for config in configs])
    if rule is None:
        methods = ", ".join(sorted({config.method for config in configs}))
        raise ValueError(f"runs of a fleet must have methods with the same kind of update, got {methods}")
    return rule


def check_same_form(runs: Sequence[Run]) -> None:
    """Refuse runs whose networks would have different shapes."""
    forms = {(str(run.envs.observation_space), run.envs.num_actions) for run in runs}
    if len(forms) > 1:
        raise ValueError(f"runs of a fleet must have the same observations and actions, got {sorted(forms)}")


def run_network(run: Run) -> Network:
    """Return the shape of a run's network; for other environments it depends on their observations."""
    return config_network(run.config, run.envs.observation_space, run.envs.num_actions)


def config_network(config: RunConfig, observation_space: gym.Space[Any], num_actions: int) -> Network:
    """Return the shape of a run's network.

    For Gymnasium ids the default layers stand for what suits the observation; other layers are used, or refused.
    """
    convolutions, linear = config.convolutions, config.linear
    if config.env is not None:
        usual = linear == OTHER_SETTINGS.network.linear
        if isinstance(observation_space, gym.spaces.Discrete):
            linear = () if usual else linear
        elif not convolutions and len(observation_space.shape or ()) == 3:
            convolutions, linear = IMAGE_CONVOLUTIONS, IMAGE_LINEAR if usual else linear
    return network_for(observation_space, num_actions, convolutions, linear)


def learner_settings(config: RunConfig, device: str, convolutions: Path = "patches") -> LearnerSettings:
    """Return the learner's part of a configuration."""
    shared = ("learning_rate", "adam_eps", "rmsprop_alpha", "rmsprop_eps", "clip_norm")
    optimiser = OptimiserSettings(kind=config.optimiser, **{name: getattr(config, name) for name in shared})
    return LearnerSettings(optimiser=optimiser, dtype=config.dtype, device=device, convolutions=convolutions)
