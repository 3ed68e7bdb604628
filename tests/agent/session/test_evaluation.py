"""Rollouts, exact scores and the probe set, against what is known about small tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backsweep.agent.session.evaluation.evaluate import evaluate, probe_for, probe_states, return_bounds
from backsweep.agent.session.evaluation.exact_values import ExactEvaluator, exact_evaluator
from backsweep.agent.session.evaluation.rollouts import Rollouts, play
from backsweep.jit.random_streams import named_generator
from backsweep.tasks import exact
from backsweep.tasks.environments import Environments, make_environments
from trainer_helpers import paper_config

FORWARD = np.array([[1.0, 0.0]])


def _forward(observations: np.ndarray) -> np.ndarray:
    return np.repeat(FORWARD, len(observations), axis=0)


def _play(episodes: int, num_envs: int, values: Any = _forward, random_chance: float = 0.0, **options: Any) -> Any:
    envs = make_environments("nchain-10", None, num_envs, 0, options)
    return _rollouts(envs, values, episodes, random_chance, 0.9)


def _rollouts(envs: Environments, values: Any, episodes: int, random_chance: float, discount: float) -> Rollouts:
    """Play a single run's episodes."""
    alone = _alone(values)
    (played,) = play(envs, alone, [0], episodes, random_chance, discount, [named_generator(0, "test")])
    return played


def _alone(values: Any) -> Any:
    return lambda runs, observations: values(observations[0])[None]


def test_the_best_policy_on_a_chain() -> None:
    rollouts = _play(7, 3)
    assert rollouts.lengths.tolist() == [9] * 7
    assert rollouts.returns.tolist() == [1.0] * 7
    assert rollouts.discounted.tolist() == pytest.approx([0.9**8] * 7)
    assert rollouts.terminated.all()
    assert rollouts.start_values.tolist() == [1.0] * 7


def test_the_worst_policy_runs_into_the_time_limit() -> None:
    rollouts = _play(5, 2, lambda seen: -_forward(seen), max_steps=30)
    assert rollouts.lengths.tolist() == [30] * 5
    assert not rollouts.terminated.any()
    assert rollouts.returns.tolist() == [0.0] * 5


def test_random_actions_come_at_the_asked_for_rate() -> None:
    lengths = _play(400, 400, random_chance=0.2).lengths
    # Backward with probability 0.1 a step, save at the start, where it only costs one: about 9 / 0.8 steps.
    assert 10.5 < lengths.mean() < 12.0


def test_rollouts_agree_with_the_exact_return_on_images() -> None:
    config = paper_config(
        "minigrid/lavacrossing-easy", task_options={"size": 5, "max_steps": 40}, evaluation_episodes=600
    )
    table = exact(config.environment, **config.task_options)
    best = table.optimal_values(0.99)
    numbers = {
        image.tobytes(): int(state)
        for states, images in table.batches()
        for state, image in zip(states, images, strict=True)
    }

    def values(observations: np.ndarray) -> np.ndarray:
        return best[[numbers[image.tobytes()] for image in observations]]

    record = evaluate(config, values, step=0)
    assert record.exact_return is not None
    assert record.value_error == 0.0
    # The return of an episode lies within -79..40; 600 episodes pin its mean down to about two.
    assert record.mean_return == pytest.approx(record.exact_return, abs=4.0)
    assert record.normalised_return == pytest.approx(
        (record.mean_return + 79) / (return_bounds(config)[1] + 79)  # type: ignore[index]
    )
    assert record.start_value == pytest.approx(record.discounted_return, abs=12.0)


def test_exact_scores_of_a_known_policy() -> None:
    config = paper_config("nchain-10", discount=0.9)
    evaluator = exact_evaluator(config)
    assert evaluator is exact_evaluator(config)
    optimal = exact("nchain-10").optimal_values(0.9)
    (best,) = ExactEvaluator(exact("nchain-10"), 0.9).scores(_alone(lambda states: optimal[states]), [0])
    assert (best.mean_return, best.success, best.value_error) == (pytest.approx(1.0), pytest.approx(1.0), 0.0)
    (lost,) = evaluator.scores(_alone(lambda states: np.repeat([[0.0, 1.0]], len(states), axis=0)), [0])
    assert lost.success == 0.0


def test_the_probe_is_the_same_for_all_methods_and_seeds() -> None:
    first = probe_for(paper_config("minigrid/doorkey", method="ter", seed=0, probe_size=20))
    second = probe_for(paper_config("minigrid/doorkey", method="uer", seed=5, probe_size=20))
    assert first.shape == (20, 40, 40, 3)
    assert np.array_equal(first, second)
    envs = make_environments("minigrid/doorkey", None, 4, 0, {})
    states = probe_states(envs, 30)
    assert len(np.unique(states.reshape(30, -1), axis=0)) > 15


def test_an_evaluation_depends_on_seed_and_step_alone() -> None:
    config = paper_config("minigrid/doorkey", evaluation_episodes=5, probe_size=8, exact=False)
    generator = named_generator(0, "values")
    table = generator.normal(size=(256, 6))

    def values(observations: np.ndarray) -> np.ndarray:
        return table[observations.reshape(len(observations), -1).sum(axis=1) % 256]

    first = evaluate(config, values, step=100)
    assert evaluate(config, values, step=100) == first
    assert evaluate(config, values, step=200) != first


def test_environments_of_other_packages() -> None:
    envs = make_environments(None, "CartPole-v1", 3, 0, {})
    rollouts = _rollouts(envs, _balance, 8, 0.0, 0.99)
    assert (rollouts.lengths > 100).all()
    envs.close()


def test_environments_of_other_packages_rest_when_their_episodes_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = make_environments(None, "CartPole-v1", 3, 0, {})
    stepped: list[int] = []
    for env in envs._envs:  # type: ignore[attr-defined]
        original = env.step

        def step(action: Any, original: Any = original) -> Any:
            stepped.append(action)
            return original(action)

        monkeypatch.setattr(env, "step", step)
    rollouts = _rollouts(envs, lambda observations: np.ones((len(observations), 2)), 3, 0.0, 0.99)
    assert len(set(rollouts.lengths.tolist())) > 1
    assert len(stepped) == rollouts.lengths.sum()
    envs.close()


def _balance(observations: np.ndarray) -> np.ndarray:
    """Push to where the pole is falling: enough to keep it up for a while."""
    lean = observations[:, 2] + observations[:, 3]
    return np.stack([-lean, lean], axis=1)
