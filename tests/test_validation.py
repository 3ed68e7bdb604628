"""Settings and values that would be taken for something else in silence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import EpisodicBackward, GraphValues, Prioritized, Replay, Topological, Uniform
from backsweep.integrations.row_picker import RowPicker

FLOATS = gym.spaces.Box(-math.inf, math.inf, (2,), np.float32)
ZEROS = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Prioritized(beta_rows=math.nan), "beta_rows must be 1 or more and finite"),
        (lambda: Prioritized(beta_rows=math.inf), "beta_rows must be 1 or more and finite"),
        (lambda: Prioritized(clip=math.inf), "clip must be positive and finite"),
        (lambda: Prioritized(clip=math.nan), "clip must be positive and finite"),
        (lambda: Prioritized(stratified=3), "stratified must be a bool, got 3"),
        (lambda: Topological(stitch="no"), "stitch must be a bool, got 'no'"),
        (lambda: Topological(shuffle=1.5), "shuffle must be 0 or the size of a window, got 1.5"),
        (lambda: Topological(shuffle=math.nan), "shuffle must be 0 or the size of a window"),
        (lambda: EpisodicBackward(timeouts=2), "timeouts must be a bool, got 2"),
        (lambda: EpisodicBackward(running=None), "running must be a bool, got None"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    "space", [gym.spaces.Dict({}), gym.spaces.Tuple([]), gym.spaces.Dict({"a": gym.spaces.Dict()})]
)
def test_empty_spaces_are_refused(space: gym.Space[Any]) -> None:
    whole = gym.spaces.Dict({"part": space, "other": gym.spaces.Discrete(3)})
    for observation_space in (space, whole):
        with pytest.raises(ValueError, match="holds no data"):
            Replay(observation_space, gym.spaces.Discrete(2), 10)


@pytest.mark.parametrize("num_envs", [1, 2])
def test_rewards_whose_sum_does_not_fit_are_refused(num_envs: int) -> None:
    replay = Replay(FLOATS, gym.spaces.Discrete(2), 10, n_step=3, num_envs=num_envs)
    shape = () if num_envs == 1 else (num_envs,)
    seen = np.zeros((*shape, 2), np.float32)
    step = (np.zeros(shape, np.int64), np.full(shape, 1e38), seen, np.zeros(shape, np.bool_), np.zeros(shape, np.bool_))
    for _ in range(5):
        replay.add(seen, *step)
    assert np.isfinite(replay.sample(8).reward).all()
    with pytest.raises(ValueError, match="also when n_step of them are added up"):
        replay.add(seen, step[0], np.full(shape, 2e38), *step[2:])
    assert len(replay) == 5 * num_envs


def test_masked_arrays_are_refused() -> None:
    replay = Replay(FLOATS, gym.spaces.Discrete(2), 10, Prioritized())
    replay.add(ZEROS, 0, 0.0, ZEROS, False, False)
    hidden = np.ma.masked_array(ZEROS, [True, False])
    calls = {
        "observation": lambda: replay.add(hidden, 0, 0.0, ZEROS, False, False),
        "next_observation": lambda: replay.add(ZEROS, 0, 0.0, hidden, False, False),
        "reward": lambda: replay.add(ZEROS, 0, np.ma.masked, ZEROS, False, False),
        "truncated": lambda: replay.add(ZEROS, 0, 0.0, ZEROS, False, np.ma.masked_array([True], [True])),
        "row": lambda: replay.update_priorities(np.ma.masked_array([0], [True]), [1.0]),
        "td_error": lambda: replay.update_priorities([0], np.ma.masked_array([1.0], [True])),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name} is masked; masked arrays are refused"):
            call()
    assert len(replay) == 1


def refused_as_masked() -> Any:
    return pytest.raises(TypeError, match="masked arrays are refused")


def masked(value: Any) -> Any:
    """Return an array, or the arrays of a Dict, with everything masked."""
    if isinstance(value, dict):
        return {name: masked(part) for name, part in value.items()}
    return np.ma.masked_array(value, np.ones(np.shape(value), np.bool_))


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("kind", ["floats", "discrete", "dict"])
def test_masked_arrays_are_refused_in_every_argument(kind: str, lanes: int) -> None:
    spaces = {"floats": FLOATS, "discrete": gym.spaces.Discrete(5)}
    space = gym.spaces.Dict(spaces) if kind == "dict" else spaces[kind]
    replay = Replay(space, FLOATS, 20, Prioritized(), num_envs=lanes)

    def observations(shape: tuple[int, ...]) -> Any:
        parts = {"floats": np.zeros((*shape, *ZEROS.shape), np.float32), "discrete": np.zeros(shape, np.int64)}
        return parts if kind == "dict" else parts[kind]

    shape = () if lanes == 1 else (lanes,)
    seen, no = observations(shape), np.zeros(shape, np.bool_)
    step = [seen, np.zeros((*shape, *ZEROS.shape), np.float32), np.zeros(shape), seen, no, no]
    trajectory = [observations((3,)), np.zeros((2, *ZEROS.shape), np.float32), np.zeros(2), np.zeros(2, np.bool_)]
    replay.add(*step)
    replay.extend(*trajectory)
    rows = len(replay)
    for call, arguments in ((replay.add, step), (replay.extend, trajectory)):
        for place, argument in enumerate(arguments):
            with refused_as_masked():
                call(*arguments[:place], masked(argument), *arguments[place + 1 :])
    for call in (replay.read, replay.truncated, lambda row: replay.update_priorities(row, [1.0])):
        with refused_as_masked():
            call(masked([0]))
    if lanes > 1:
        for name, value in (("mask", [True, True]), ("lanes", [0, 1]), ("successor_unknown", [False, False])):
            with refused_as_masked():
                replay.add(*step, **{name: masked(value)})
    assert len(replay) == rows


def test_masked_values_of_the_network_are_refused() -> None:
    replay = Replay(gym.spaces.Discrete(5), gym.spaces.Discrete(2), 10, values=GraphValues())
    replay.add(0, 0, 0.0, 1, False, False)
    with refused_as_masked():
        replay.renew_values(lambda states: masked(np.zeros((len(states), 2))))


def test_masked_arrays_are_refused_by_what_adapters_share() -> None:
    picker = RowPicker(10, 1, Uniform(), 0)
    step: dict[str, Any] = {"rewards": [0.0], "terminated": [False], "truncated": [False]}
    for name, value in (("observations", [ZEROS]), ("next_observations", [ZEROS]), *step.items()):
        given = {"observations": [ZEROS], "next_observations": [ZEROS], **step}
        given[name] = [masked(value[0])] if name.endswith("observations") else masked(value)
        with refused_as_masked():
            picker.add([0], [0], **given)
    assert len(picker.replay) == 0


def test_numbers_beyond_the_projections_range_are_said() -> None:
    replay = Replay(FLOATS, gym.spaces.Discrete(2), 10, Topological())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replay.add(ZEROS + 4e12, 0, 0.0, ZEROS - 4e12, False, False)
    for sign in (1, -1):
        with pytest.warns(UserWarning, match="count as the same state"):
            replay.add(sign * (ZEROS + 5e12), 0, 0.0, ZEROS, False, False)
