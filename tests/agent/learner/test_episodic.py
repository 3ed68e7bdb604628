"""EBU's bookkeeping on a replay whose episodes are known by heart."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import EpisodicBackward, Mixture, Replay, Uniform
from backsweep.agent.learner.episodic import BackwardTargets
from backsweep.agent.learner.rules import TargetRule
from backsweep.types import Batch


def _replay(sampler: Any, lengths: tuple[int, ...] = (5, 3, 4), last_is_timeout: bool = False) -> Replay:
    """Chains: step t leads from state t to t + 1, and the last step pays 1."""
    replay = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(2), 100, sampler, gamma=0.5)
    for number, length in enumerate(lengths):
        for step in range(length):
            ends = step == length - 1
            timeout = ends and last_is_timeout and number == len(lengths) - 1
            replay.add(step, 1, float(ends), step + 1, ends and not timeout, timeout)
    return replay


def _zero(observations: Any, *, target: bool) -> np.ndarray:
    return np.zeros((len(observations), 2))


def _known(targets: BackwardTargets, batch: Batch) -> np.ndarray:
    return targets.of(batch, _zero)[0]


def test_every_row_of_a_walk_gets_its_episodes_target_whatever_the_batches() -> None:
    replay = _replay(EpisodicBackward())
    targets = BackwardTargets(TargetRule(kind="backward", diffusion=1.0, double=False), replay)
    for _ in range(40):
        batch = replay.sample(7)
        known = _known(targets, batch)
        for row, value in zip(batch.row.tolist(), known.tolist(), strict=True):
            episode = replay.episode(row)
            assert value == 0.5 ** (episode[-1] - row)


def test_a_timeout_bootstraps_unless_the_released_code_is_followed() -> None:
    def ones(observations: Any, *, target: bool) -> np.ndarray:
        return np.ones((len(observations), 2))

    replay = _replay(EpisodicBackward(), (3,), last_is_timeout=True)
    rule = TargetRule(kind="backward", diffusion=0.0)
    batch = replay.sample(3)
    assert BackwardTargets(rule, replay).of(batch, ones)[0].tolist() == [1.5, 0.5, 0.5]
    released = BackwardTargets(rule, replay, bootstrap_at_timeout=False)
    assert released.of(batch, ones)[0].tolist() == [1.0, 0.5, 0.5]


def test_mixed_in_rows_and_fallback_rows_get_one_step_targets() -> None:
    mixed = _replay(Mixture([(0.5, EpisodicBackward()), (0.5, Uniform())]))
    batch = mixed.sample(8)
    known = _known(BackwardTargets(TargetRule(kind="backward"), mixed), batch)
    assert np.array_equal(np.isnan(known), batch.source == 1)

    running = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(2), 100, EpisodicBackward(running=False))
    for step in range(9):
        running.add(step, 0, 0.0, step + 1, False, False)
    batch = running.sample(6)
    known = _known(BackwardTargets(TargetRule(kind="backward"), running), batch)
    assert np.array_equal(np.isnan(known), batch.row != 8)


def test_the_released_code_leaves_an_episodes_first_steps_out() -> None:
    replay = _replay(EpisodicBackward(), (5,))
    targets = BackwardTargets(TargetRule(kind="backward", skipped_steps=3), replay)
    _, left_out = targets.of(replay.sample(5), _zero)
    assert left_out.tolist() == [False, False, True, True, True]


def test_the_walk_goes_on_from_its_state() -> None:
    replay = _replay(EpisodicBackward(), (9,))
    rule = TargetRule(kind="backward", diffusion=1.0, double=False)
    first, second = BackwardTargets(rule, replay), BackwardTargets(rule, replay)
    _known(first, replay.sample(4))
    second.load_state({name: array.copy() for name, array in first.state().items()})

    def wrong(observations: Any, *, target: bool) -> np.ndarray:
        raise AssertionError("the targets were worked out already")

    batch = replay.sample(4)
    assert second.of(batch, wrong)[0].tolist() == pytest.approx([0.5**4, 0.5**5, 0.5**6, 0.5**7])
