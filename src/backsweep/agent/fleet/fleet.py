"""A fleet: runs that train together, with their networks stacked. A single run is a fleet of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.fleet.loop import Schedule
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.convolutions import Path, fastest_path
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings, UpdateResult
from backsweep.agent.learner.networks import Network, network_for
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.recorded_learner import RecordedLearner
from backsweep.agent.learner.rules import TargetRule, common_rule
from backsweep.agent.methods import method_for
from backsweep.replay import Replay
from backsweep.types import Batch

OWN_FIELDS = (
    *("task", "env", "task_options", "method", "seed", "steps", "exact", "reward_scale"),
    *("gap", "gap_floor", "untried", "cautious", "explore", "refresh", "noise_limit"),
    *("graph_share", "erlam_weight", "backup_depth", "n_step"),
    *("eta", "mix_with", "roots", "root_candidates", "predecessors"),
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
        self._recorded: RecordedLearner | None = None

    def choose_actions(self) -> list[NDArray[np.int64]]:
        """Return every run's actions: random ones by its own schedule and generator, else its network's best."""
        drawn = [run.random_actions(self.step) for run in self.runs]
        if all(random.all() for random, _ in drawn):
            return [actions for _, actions in drawn]
        seen = self.runs[0].observations[None] if len(drawn) == 1 else np.stack([run.observations for run in self.runs])
        best = self._programs().greedy(seen)
        return [np.where(random, actions, best[run]) for run, (random, actions) in enumerate(drawn)]

    def passes(self, interval: int) -> bool:
        """Say whether the last step reached a multiple of `interval`."""
        return self.schedule.passes(self.step, interval)

    def prepare_to_learn(self) -> None:
        """Settle what has to be known before an update: reward scales, once, and graph values, if they are due."""
        for index, run in enumerate(self.runs):
            self.learner.scales[index] = run.estimate_reward_scale()
            run.renew_values(partial(self.learner.values, index, target=True))

    def update(self, batches: Sequence[Batch]) -> UpdateResult:
        """Update the networks on one batch per run."""
        return self._programs().update(batches, self.given_targets(batches), self.tried_values(batches))

    def _programs(self) -> Learner | RecordedLearner:
        """Return what computes acts and updates: recorded programs where each call would take many launches."""
        if not records_programs(self.learner.device, self.shared):
            return self.learner
        if self._recorded is None:
            space = self.runs[0].envs.observation_space
            self._recorded = RecordedLearner(
                self.learner, self.shared.batch_size, space.shape or (), np.dtype(space.dtype)
            )
        return self._recorded

    def copy_target(self) -> None:
        """Copy the target networks; graph values that depend on them are due."""
        (self._recorded or self.learner).copy_target()
        for run in self.runs:
            run.values_due = run.method.values is not None

    def given_targets(self, batches: Sequence[Batch]) -> NDArray[np.float64] | None:
        """Return targets that are known before an update (runs, batch), None if no run has any.

        Rows that EBU skips get weight 0.
        """
        if not self.learner.rule.gives_targets:
            return None
        rows = []
        for index, (run, batch) in enumerate(zip(self.runs, batches, strict=True)):
            if run.backward is None:
                missing = np.full(len(batch), np.nan)
                rows.append(missing if batch.target is None else batch.target.astype(np.float64))
                continue
            known, left_out = run.backward.of(batch, partial(self.learner.values, index))
            if left_out.any():
                batch.weight = batch.weight * ~left_out
            rows.append(known)
        return np.stack(rows)

    def tried_values(self, batches: Sequence[Batch]) -> NDArray[np.float64] | None:
        """Return the graph's values of tried actions (runs, batch, actions), None if the rule does not imitate them."""
        if not self.learner.rule.imitation:
            return None
        found = []
        for run, batch in zip(self.runs, batches, strict=True):
            planner = run.replay.machinery.planner
            assert planner is not None, "only methods with graph values imitate them"
            found.append(planner.tried_values(batch.row))
        return np.stack(found).astype(np.float64)

    def drop(self, gone: Sequence[int]) -> list[Run]:
        """Remove some runs and return them."""
        dropped = [self.runs[index] for index in gone]
        kept = [index for index in range(len(self.runs)) if index not in set(gone)]
        self.runs = [self.runs[index] for index in kept]
        if kept:
            self.learner.keep(kept)
            self._recorded = None
        for run in dropped:
            run.envs.close()
        return dropped


def records_programs(device: torch.device, config: RunConfig) -> bool:
    """Return whether acts and updates of plain environments are recorded; a recorded act has one environment a run."""
    return device.type == "cuda" and config.num_envs == 1


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
    """Return the shape of a run's network."""
    convolutions, linear = config.convolutions, config.linear
    if config.env is not None and isinstance(observation_space, gym.spaces.Discrete):
        convolutions, linear = (), ()
    elif config.env is not None and not convolutions and len(observation_space.shape or ()) == 3:
        convolutions, linear = ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,)
    return network_for(observation_space, num_actions, convolutions, linear)


def learner_settings(config: RunConfig, device: str, convolutions: Path = "patches") -> LearnerSettings:
    """Return the learner's part of a configuration."""
    shared = ("learning_rate", "adam_eps", "rmsprop_alpha", "rmsprop_eps", "clip_norm")
    optimiser = OptimiserSettings(kind=config.optimiser, **{name: getattr(config, name) for name in shared})
    return LearnerSettings(optimiser=optimiser, dtype=config.dtype, device=device, convolutions=convolutions)
