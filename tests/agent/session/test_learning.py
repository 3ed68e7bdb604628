"""Every method learns a chain and a small MiniGrid level, to a stated level, from a fixed seed."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import pytest

from backsweep.agent import METHOD_NAMES, RunConfig
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.plain_engine import take_turn
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.session.evaluation.evaluate import evaluate
from trainer_helpers import paper_config

# One root, one predecessor and no mixing: most of what was seen is never learned from. It is an ablation.
WITHOUT_MIXING = "ter-single"


def _raise(run: Run, error: Exception) -> None:
    raise error


def _trained(config: RunConfig) -> Learner:
    fleet = Fleet([config])
    while fleet.step < config.steps:
        take_turn(fleet, Clock(), _raise)
    return fleet.learner


def _late_return(config: RunConfig, every: int) -> float:
    """Return the median of five evaluations at the end: a greedy policy can stumble from one update to the next."""
    fleet, returns = Fleet([config]), []
    while fleet.step < config.steps:
        take_turn(fleet, Clock(), _raise)
        if fleet.step > config.steps - 5 * every and fleet.passes(every):
            returns.append(evaluate(config, partial(fleet.learner.values, 0), fleet.step).mean_return)
    assert len(returns) == 5
    return statistics.median(returns)


LARGEST_ERRORS = {WITHOUT_MIXING: 0.6, "n-step": 0.03, "graph": 0.1, "graph-uniform": 0.1, "gap": 0.15}
"""On the chain, against Q*. n-step returns follow the policy that explored; a wider gap puts all but the best action
below Q* on purpose."""


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_learns_the_chain(method: str) -> None:
    config = paper_config("nchain-10", method=method, steps=2_000, warmup_steps=500, epsilon_steps=1_500, probe_size=16)
    record = evaluate(config, partial(_trained(config).values, 0), config.steps)
    assert record.exact_success == pytest.approx(1.0)
    assert record.mean_return == 1.0
    assert record.value_error is not None
    assert record.value_error < LARGEST_ERRORS.get(method, 0.01)


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_learns_a_small_room_from_images(method: str) -> None:
    options: dict[str, Any] = {
        "task_options": {
            "size": 5,
            "crossings": 0,
            "actions": "released",
            "reward": "package",
            "max_steps": 100,
            "image_size": 20,
        },
        "convolutions": ((16, 4, 4), (16, 3, 1)),
        "linear": (64,),
        "steps": 4_500 if method == WITHOUT_MIXING else 3_000,
        "warmup_steps": 1_000,
        "epsilon_steps": 2_000,
        "target_interval": 50,
        "learning_rate": 1e-3,
        "discount": 0.95,
        "ratio": 0.5,
        "batch_size": 32,
        "capacity": 10_000,
        "evaluation_episodes": 20,
        "probe_size": 16,
    }
    config = paper_config("minigrid/simplecrossing-easy", method=method, seed=1, **options)
    # Random play gets about 0.4; the best there is, with 5% random actions, 0.95.
    assert _late_return(config, 100) > (0.6 if method == WITHOUT_MIXING else 0.9)


def test_cartpole_is_learned_with_several_environments() -> None:
    config = paper_config(
        env="CartPole-v1",
        method="uer",
        steps=12_000,
        num_envs=4,
        linear=(64,),
        epsilon_steps=4_000,
        target_interval=200,
        evaluation_episodes=10,
        probe_size=16,
        ratio=0.5,
    )
    assert _late_return(config, 500) > 40  # random play gets about 22
