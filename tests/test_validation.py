"""Settings and values that would be taken for something else in silence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import pytest

from backsweep import EpisodicBackward, GraphValues, Mixture, Prioritized, Quantized, Replay, Topological, Uniform
from backsweep.integrations.row_picker import RowPicker
from backsweep.samplers import sum_tree_kernels

FLOATS = gym.spaces.Box(-math.inf, math.inf, (2,), np.float32)
ZEROS = np.zeros(2, np.float32)
PAIR = np.array(["a", "b"])


def empty(**options: Any) -> Replay:
    return Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 50, **options)


def filled(**options: Any) -> Replay:
    replay = empty(**options)
    for state in range(6):
        replay.add(state, 0, 1.0, state + 1, state == 5, False)
    return replay


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Prioritized(beta_rows=math.nan), "beta_rows must be 1 or more and finite"),
        (lambda: Prioritized(beta_rows=math.inf), "beta_rows must be 1 or more and finite"),
        (lambda: Prioritized(clip=math.inf), "clip must be positive and finite"),
        (lambda: Prioritized(clip=math.nan), "clip must be positive and finite"),
        (lambda: Prioritized(stratified=3), "stratified must be a bool, got 3"),
        (lambda: Topological(stitch="no"), "stitch must be a bool, got 'no'"),
        (lambda: Topological(shuffle=1.5), "shuffle must be 0 or the size of a window, at most 100000000, got 1.5"),
        (lambda: Topological(shuffle=math.nan), "shuffle must be 0 or the size of a window"),
        (lambda: EpisodicBackward(timeouts=2), "timeouts must be a bool, got 2"),
        (lambda: EpisodicBackward(running=None), "running must be a bool, got None"),
        (lambda: Prioritized(beta_rows=10**400), "beta_rows must be 1 or more and finite, or None, got 1000"),
        (lambda: Prioritized(beta=10**400), "beta must be 0 or more and finite"),
        (lambda: Prioritized(epsilon=1e300, alpha=2), "epsilon \\*\\* alpha must not overflow, got 1e\\+300 \\*\\* 2"),
        (lambda: Prioritized(epsilon=10**300, alpha=10**9), "epsilon \\*\\* alpha must not overflow"),
        (lambda: Prioritized(normalise=PAIR), "normalise must be 'buffer' or 'batch', got array"),  # type: ignore
        (lambda: Topological(trees=PAIR), "trees must be one of .*, got array"),  # type: ignore[arg-type]
        (lambda: Topological(draw=PAIR), "draw must be one of .*, got array"),  # type: ignore[arg-type]
        (lambda: Topological(fallback=PAIR), "fallback must be one of .*, got array"),  # type: ignore[arg-type]
        (lambda: GraphValues(untried=PAIR), "untried must be one of .*, got array"),  # type: ignore[arg-type]
        (lambda: empty(autoreset=PAIR), "autoreset must be None or one of .*, got array"),
        (lambda: empty(check_autoreset=PAIR), "check_autoreset must be one of .*, got array"),
        (lambda: Topological(roots=2**62), "roots must be an int from 1 to 2147483647, got 4611686018427387904"),
        (lambda: Topological(shuffle=10**10), "shuffle must be 0 or the size of a window, at most 100000000, got 1000"),
        (lambda: empty(n_step=2**63), "n_step must be at most 9223372036854775807, got 9223372036854775808"),
        (lambda: empty(n_step=np.timedelta64(1)), "n_step must be an int, got timedelta64"),
        (lambda: empty().read([0], n_step=10**30), "n_step must be at most 9223372036854775807"),
        (lambda: Mixture(3), "Mixture: parts must be a list of pairs .*, got 3"),  # type: ignore[arg-type]
        (lambda: Mixture("ab"), "Mixture: parts must be a list of pairs .*, got 'ab'"),  # type: ignore[arg-type]
        (lambda: Quantized(step=None), "Quantized: step must be a number above 0, .*got None"),  # type: ignore[arg-type]
        (lambda: Quantized(step=np.array(1.0)), "Quantized: step must be a number above 0"),  # type: ignore[arg-type]
        (lambda: filled().view(title=3), "title must be a str, got 3"),  # type: ignore[arg-type]
        (lambda: filled().view(action_names=3), "action_names must be a list of names or None, got 3"),  # type: ignore
        (lambda: filled().view(action_names="up"), "action_names must be a list of names or None, got 'up'"),
        (lambda: filled().extend(ZEROS, np.array(3), 0.0), "action must hold one action for each step, got ndarray"),
        (lambda: filled().graph.transitions("x", 1), "vertex must be an int, got str"),  # type: ignore[arg-type]
        (lambda: filled().graph.transitions(99, 1), "vertex 99 is not in the graph"),
        (lambda: filled().graph.visits(np.timedelta64(1)), "vertex must be an int, got timedelta64"),  # type: ignore
        (
            lambda: filled(values=GraphValues()).renew_values(lambda seen: seen, progress=3),  # type: ignore[arg-type]
            "progress must be a function of \\(done, total\\) or None, got 3",
        ),
        (lambda: Replay.load("nowhere", file=3), "^file must be a str or a Path, got 3"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_mean_nothing_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_truncations_are_looked_for_as_far_as_the_episode_goes() -> None:
    replay = empty()
    for state in range(6):  # two episodes, cut off after three and after two steps; a third is running
        replay.add(state, 0, 1.0, state + 1, False, state in (2, 4))
    rows, ahead = np.arange(6), np.array([1, 2, 1, 1, 3, 9], np.int8)
    assert replay.truncated(rows, ahead).tolist() == [False, True, True, False, True, False]
    for most in (3, 10**6, 2**63 - 1, np.uint64(2**64 - 1)):  # at once, however many
        assert replay.truncated(rows, most).tolist() == [True] * 5 + [False]
    assert replay.truncated(rows[:0], rows[:0]).tolist() == []
    for steps, message in (
        (0, "steps must be 1 or more, got 0"),
        (np.array([1, 1, 1, 1, 1, -1]), "steps must be 1 or more, got -1"),
        ([1, 2], r"steps must be one number or have the shape of row, \(6,\), got \(2,\)"),
        (1.0, "steps must hold integers, got dtype float64"),
        (True, "steps must hold integers, got dtype bool"),
        (2**64, "steps must hold integers, got dtype object"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            replay.truncated(rows, steps)


@pytest.mark.parametrize("trees", ["shared", "separate"])
@pytest.mark.parametrize("draw", ["uniform", "visits"])
def test_more_predecessors_and_roots_than_there_can_be_are_all_of_them(trees: Any, draw: Any) -> None:
    options = {"trees": trees, "draw": draw}
    enough = filled(sampler=Topological(roots=100, predecessors=50, **options)).sample(20).row
    many = filled(sampler=Topological(roots=2**31 - 1, predecessors=2**63, **options)).sample(20).row
    np.testing.assert_array_equal(many, enough)


def test_ints_among_the_settings_of_priorities_are_taken_as_floats() -> None:
    """Kernels would be compiled again for ints, which takes a second."""
    rows = []
    for one in (1, 1.0):
        sampler = Prioritized(alpha=one, beta=one, final_beta=one, epsilon=one, clip=one, beta_rows=10)
        replay = filled(sampler=sampler)
        batch = replay.sample(5)
        replay.update_priorities(batch.row, batch.reward)
        batch = replay.sample(5)
        rows.append((batch.row.tolist(), batch.weight.tolist()))
        assert type(replay.stats()["beta"]) is float
    assert {form[3] for form in sum_tree_kernels.draw_prioritized.signatures} == {numba.float64}
    assert {number for form in sum_tree_kernels.update_priorities.signatures for number in form[3:6]} == {numba.float64}
    assert rows[0] == rows[1]
    filled(sampler=Prioritized(beta=10**30)).sample(3)


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
