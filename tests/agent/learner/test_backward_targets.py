"""EBU's targets: by hand, on replays whose episodes are known, and against the plain-Python twin."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import EpisodicBackward, Mixture, Replay, Uniform
from backsweep.agent.learner.backward_targets import BackwardTargets
from backsweep.agent.learner.rules import TargetRule
from backsweep.types import Batch
from twins.backward_targets import BackwardTargetsTwin


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


class TestBackwardTargets:
    """Three steps, actions 0, 1, 0; rewards 0, 0, 1; gamma 0.9; the last step terminates.

    Next-state values under the target network: step 0 [2, 1], step 1 [3, 5], step 2 is terminal.
    """

    action = np.array([0, 1, 0])
    reward = np.array([0.0, 0.0, 1.0])
    next_target = np.array([[2.0, 1.0], [3.0, 5.0], [7.0, 7.0]])
    next_online = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])

    def targets(
        self, next_target: np.ndarray, next_online: np.ndarray | None, diffusion: float, terminates: bool = True
    ) -> np.ndarray:
        """Return the targets of the steps, in time order."""
        replay = Replay(gym.spaces.Discrete(4), gym.spaces.Discrete(2), 10, EpisodicBackward(), gamma=0.9)
        for step in range(3):
            last = step == 2
            action, reward = int(self.action[step]), float(self.reward[step])
            replay.add(step, action, reward, step + 1, last and terminates, last and not terminates)

        def values(observations: Any, *, target: bool) -> Any:
            return (next_target if target or next_online is None else next_online)[observations - 1]

        rule = TargetRule(kind="backward", diffusion=diffusion, double=next_online is not None)
        return BackwardTargets(rule, replay).of(replay.sample(3), values)[0][::-1]

    def test_half_diffusion_by_hand(self) -> None:
        # y2 = 1. table[1][0] = 0.5 * 1 + 0.5 * 3 = 2. y1 = 0.9 * max(2, 5) = 4.5. table[0][1] = 0.5 * 4.5 + 0.5 = 2.75.
        # y0 = 0.9 * max(2, 2.75) = 2.475.
        targets = self.targets(self.next_target, None, 0.5)
        assert targets.tolist() == pytest.approx([2.475, 4.5, 1.0])

    def test_double_selection_by_hand(self) -> None:
        # The online network prefers action 1 after step 0 and action 0 after step 1.
        # y2 = 1. table[1][0] = 2. y1 = 0.9 * table[1][0] = 1.8. table[0][1] = 0.5 * 1.8 + 0.5 * 1 = 1.4. y0 = 1.26.
        targets = self.targets(self.next_target, self.next_online, 0.5)
        assert targets.tolist() == pytest.approx([1.26, 1.8, 1.0])

    def test_no_diffusion_is_the_one_step_target(self) -> None:
        plain = self.targets(self.next_target, self.next_online, 0.0)
        # 0.9 times the target network's value of the online network's action: 1 after step 0, 0 after step 1.
        assert plain.tolist() == pytest.approx([0.9 * 1, 0.9 * 3, 1.0])

    def test_full_diffusion_carries_the_return_back(self) -> None:
        # All other values are far below, so the best action is always the one taken.
        low = np.full((3, 2), -100.0)
        targets = self.targets(low, None, 1.0)
        assert targets.tolist() == pytest.approx([0.81, 0.9, 1.0])

    def test_a_timeout_bootstraps(self) -> None:
        # The last step is truncated: y2 = 1 + 0.9 * 7.
        targets = self.targets(self.next_target, None, 0.5, terminates=False)
        assert targets[2] == pytest.approx(7.3)

    def test_diffusion_out_of_range(self) -> None:
        with pytest.raises(ValueError, match="diffusion"):
            self.targets(self.next_target, None, 1.5)


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


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_walk_is_its_twins(data: st.DataObject) -> None:
    """Random episodes that end in all ways, a ring that overwrites, batches of any size, with and without a mixture."""
    mixed, seed = data.draw(st.booleans()), data.draw(st.integers(0, 2**20))
    walking = EpisodicBackward(running=data.draw(st.booleans()))
    sampler = Mixture([(0.6, walking), (0.4, Uniform())]) if mixed else walking
    replay = Replay(gym.spaces.Discrete(40), gym.spaces.Discrete(3), 25, sampler, gamma=0.9, seed=seed)
    generator = np.random.default_rng(seed)
    rule = TargetRule(
        kind="backward",
        diffusion=data.draw(st.sampled_from([0.0, 0.3, 1.0])),
        double=data.draw(st.booleans()),
        skipped_steps=data.draw(st.integers(0, 3)),
    )
    bootstrap = data.draw(st.booleans())
    found, twin = BackwardTargets(rule, replay, bootstrap), BackwardTargetsTwin(rule, replay, bootstrap)
    tables = generator.normal(size=(2, 40, 3))

    def values(observations: Any, *, target: bool) -> Any:
        return tables[int(target)][observations]

    for size in data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8)):
        for _ in range(data.draw(st.integers(1, 12))):
            end = generator.random()
            state, action = generator.integers(40), generator.integers(3)
            replay.add(state, action, generator.normal(), generator.integers(40), end < 0.1, 0.1 <= end < 0.2)
        batch = replay.sample(size)
        known, skipped = found.of(batch, values)
        expected, expected_skipped = twin.of(batch, values)
        np.testing.assert_array_equal(known, expected)
        np.testing.assert_array_equal(skipped, expected_skipped)
        if data.draw(st.booleans()):
            resumed = BackwardTargets(rule, replay, bootstrap)
            resumed.load_state(found.state())
            found = resumed
