"""Bad input is refused at the door: argument, value and expectation are named, and the replay stays as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import (
    EpisodicBackward,
    Mixture,
    Prioritized,
    PseudoTerminals,
    Quantized,
    RandomProjection,
    Replay,
    Terminals,
    Topological,
    Uniform,
)
from backsweep.encoding import LiveEncoder
from states import assert_same_state, state_of
from worlds import WORLDS

SAMPLER = Mixture([(0.5, Topological()), (0.5, Prioritized())])
PIXELS = gym.spaces.Box(0, 255, (4, 2), np.uint8)
FLOATS = gym.spaces.Box(-1, 1, (3,), np.float32)


def filled(num_envs: int = 1, observation_space: gym.Space[Any] = PIXELS, **options: Any) -> Replay:
    """A replay that has been in use for a while."""
    action_space = options.pop("action_space", gym.spaces.Discrete(4))
    options.setdefault("check_autoreset", "off")  # nothing is reset here
    replay = Replay(observation_space, action_space, 20, SAMPLER, num_envs=num_envs, **options)
    for t in range(33):
        replay.add(**step(replay, t))
        if t > 3:
            batch = replay.sample(6)
            replay.update_priorities(batch.row, batch.row / 7)
    return replay


def step(replay: Replay, t: int = 0, **changes: Any) -> dict[str, Any]:
    """A good step, some of its parts replaced."""
    n = replay.num_envs

    def draw(space: gym.Space[Any], key: int) -> Any:
        space.seed(key)
        return space.sample() if n == 1 else np.stack([space.sample() for _ in range(n)])

    shape = () if n == 1 else (n,)
    arguments = {
        "observation": draw(replay.observation_space, t),
        "action": draw(replay.action_space, t),
        "reward": np.full(shape, t / 3),
        "next_observation": draw(replay.observation_space, t + 1),
        "terminated": np.full(shape, t % 5 == 4),
        "truncated": np.full(shape, t % 7 == 6),
    }
    return {**arguments, **changes}


def refused(replay: Replay, call: Callable[[], Any], error: type[Exception], *words: str) -> None:
    before = state_of(replay)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
    assert_same_state(state_of(replay), before)


nan, inf = math.nan, math.inf

ONE_LANE: list[tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = [
    ({"observation": np.zeros((2, 4), np.uint8)}, ValueError, ("observation", "(4, 2)", "(2, 4)")),
    ({"observation": np.zeros((3, 4, 2), np.uint8)}, ValueError, ("observation", "(4, 2)", "(3, 4, 2)")),
    ({"next_observation": np.zeros(8, np.uint8)}, ValueError, ("next_observation", "(4, 2)", "(8,)")),
    ({"observation": np.zeros((4, 2))}, TypeError, ("observation", "uint8", "float64")),
    ({"observation": np.full((4, 2), 256)}, TypeError, ("observation", "uint8", "int64")),
    ({"observation": np.full((4, 2), -1)}, TypeError, ("observation", "uint8", "int64")),
    ({"next_observation": np.full((4, 2), "a")}, TypeError, ("next_observation", "uint8")),
    ({"observation": None}, TypeError, ("observation", "uint8", "object")),
    ({"action": 4}, ValueError, ("action", "0 to 3", "4")),
    ({"action": -1}, ValueError, ("action", "0 to 3", "-1")),
    ({"action": np.array(7)}, ValueError, ("action", "0 to 3", "7")),
    ({"action": 1.0}, TypeError, ("action", "int64", "float64")),
    ({"action": "left"}, TypeError, ("action", "int64")),
    ({"action": None}, TypeError, ("action", "int64", "object")),
    ({"action": [1, 2]}, ValueError, ("action", "shape", "(2,)")),
    ({"reward": nan}, ValueError, ("reward", "finite", "nan")),
    ({"reward": inf}, ValueError, ("reward", "finite", "inf")),
    ({"reward": -inf}, ValueError, ("reward", "finite", "-inf")),
    ({"reward": np.float32("nan")}, ValueError, ("reward", "finite", "nan")),
    ({"reward": np.array([nan])}, ValueError, ("reward", "finite", "nan")),
    ({"reward": 10**400}, TypeError, ("reward", "number")),
    ({"reward": 1e39}, ValueError, ("reward", "1e+39")),
    ({"reward": "1"}, TypeError, ("reward", "number")),
    ({"reward": None}, TypeError, ("reward", "number")),
    ({"reward": [1.0, 2.0]}, ValueError, ("reward", "(1,)", "(2,)")),
    ({"terminated": 2}, ValueError, ("terminated", "True or False", "2")),
    ({"terminated": nan}, ValueError, ("terminated", "True or False", "nan")),
    ({"terminated": None}, TypeError, ("terminated", "True or False", "None")),
    ({"truncated": 0.5}, ValueError, ("truncated", "True or False", "0.5")),
    ({"truncated": [True, False]}, ValueError, ("truncated", "(1,)", "(2,)")),
    ({"mask": [True, False]}, ValueError, ("mask", "(1,)", "(2,)")),
    ({"mask": [1]}, TypeError, ("mask", "bool")),
    ({"lanes": [0, 0]}, ValueError, ("lanes", "once", "[0, 0]")),
    ({"lanes": [1]}, ValueError, ("lanes", "0 to 0", "1")),
    ({"lanes": []}, TypeError, ("lanes", "integers", "float64")),
    ({"lanes": np.array([], int)}, ValueError, ("lanes", "at least one", "(0,)")),
    ({"lanes": [True]}, TypeError, ("lanes", "integers", "bool")),
    ({"successor_unknown": True}, ValueError, ("successor_unknown", "neither terminates", "lane 0")),
    ({"successor_unknown": 3, "terminated": True}, ValueError, ("successor_unknown", "True or False", "3")),
    ({"final_observation": []}, ValueError, ("final_observation", "1")),
    ({"final_observation": [None], "terminated": True}, ValueError, ("final_observation[0]", "None")),
    ({"final_observation": [np.zeros(3, np.uint8)], "truncated": True}, ValueError, ("final_observation[0]", "(3,)")),
]


@pytest.mark.parametrize(("changes", "error", "words"), ONE_LANE)
def test_a_bad_step_is_refused(changes: dict[str, Any], error: type[Exception], words: tuple[str, ...]) -> None:
    replay = filled()
    refused(replay, lambda: replay.add(**step(replay, **changes)), error, *words)


FLOAT_STEPS: list[tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = [
    ({"observation": np.array([0, nan, 0], np.float32)}, ValueError, ("observation", "finite")),
    ({"next_observation": np.array([0, 0, inf], np.float32)}, ValueError, ("next_observation", "finite")),
    ({"observation": np.zeros(3, np.float64)}, TypeError, ("observation", "float32", "float64")),
    ({"action": np.array([0, 1.5], np.float32)}, ValueError, ("action", "-1.0 to 1.0", "1.5")),
    ({"action": np.array([nan, 0], np.float32)}, ValueError, ("action", "finite")),
    ({"action": np.zeros(3, np.float32)}, ValueError, ("action", "(2,)", "(3,)")),
]


@pytest.mark.parametrize(("changes", "error", "words"), FLOAT_STEPS)
def test_a_bad_step_of_floats_is_refused(
    changes: dict[str, Any], error: type[Exception], words: tuple[str, ...]
) -> None:
    replay = filled(observation_space=FLOATS, action_space=gym.spaces.Box(-1, 1, (2,), np.float32))
    refused(replay, lambda: replay.add(**step(replay, **changes)), error, *words)


@pytest.mark.parametrize("name", ["observation", "action", "reward", "next_observation", "terminated", "truncated"])
@pytest.mark.parametrize("given", [2, 4])
def test_unequal_lanes_are_refused(name: str, given: int) -> None:
    replay = filled(num_envs=3)
    good = step(replay)[name]
    wrong = np.concatenate([good, good])[:given]
    refused(replay, lambda: replay.add(**step(replay, **{name: wrong})), ValueError, name, str(wrong.shape))


def test_one_bad_lane_spoils_the_call() -> None:
    replay = filled(num_envs=3)
    refused(replay, lambda: replay.add(**step(replay, reward=[0.0, 1.0, nan])), ValueError, "reward", "nan")
    refused(replay, lambda: replay.add(**step(replay, action=[0, 1, 9])), ValueError, "action", "9")
    refused(replay, lambda: replay.add(**step(replay, mask=[True])), ValueError, "mask", "(3,)")
    refused(replay, lambda: replay.add(**step(replay, mask=[1, 0, 1])), TypeError, "mask", "bool")


def test_bad_dicts_and_tuples_are_refused() -> None:
    replay = filled(observation_space=WORLDS["dict"].space)
    good = step(replay)["observation"]
    refused(replay, lambda: replay.add(**step(replay, observation=3)), TypeError, "observation", "dict", "int")
    for wrong in ({**good, "more": 1}, {"kind": 1}):
        refused(replay, lambda wrong=wrong: replay.add(**step(replay, observation=wrong)), ValueError, "keys", "kind")  # type: ignore[misc]
    wrong = {**good, "kind": 5}
    refused(replay, lambda: replay.add(**step(replay, next_observation=wrong)), ValueError, "next_observation['kind']")
    pair = Replay(WORLDS["tuple"].space, gym.spaces.Discrete(2), 5)
    refused(pair, lambda: pair.add((1,), 0, 0.0, (1,), False, False), TypeError, "observation", "2 parts")


@pytest.mark.parametrize(
    ("size", "error", "words"),
    [
        (0, ValueError, ("batch_size", "0")),
        (-3, ValueError, ("batch_size", "-3")),
        (21, ValueError, ("batch_size", "20", "21")),
        (2.0, TypeError, ("batch_size", "float")),
        (True, TypeError, ("batch_size", "bool")),
        ("4", TypeError, ("batch_size", "str")),
    ],
)
def test_a_bad_batch_size_is_refused(size: Any, error: type[Exception], words: tuple[str, ...]) -> None:
    replay = filled()
    refused(replay, lambda: replay.sample(size), error, *words)


def test_sampling_from_an_empty_replay_is_refused() -> None:
    for sampler in (Uniform(), SAMPLER, EpisodicBackward(), Topological()):
        replay = Replay(PIXELS, gym.spaces.Discrete(4), 20, sampler)
        refused(replay, lambda replay=replay: replay.sample(4), ValueError, "empty replay")  # type: ignore[misc]


def test_a_declared_error_instead_of_a_fallback_is_raised_until_there_is_something_to_serve() -> None:
    for sampler in (Topological(fallback="error"), EpisodicBackward(running=False, fallback="error")):
        replay = Replay(PIXELS, gym.spaces.Discrete(4), 20, sampler)
        replay.add(**step(replay, terminated=False, truncated=False))
        for _ in range(3):
            with pytest.raises(RuntimeError, match="fallback='error'"):
                replay.sample(4)
        replay.add(**step(replay, terminated=True, truncated=False))
        assert 1 in replay.sample(4).row


UPDATES: list[tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = [
    ({"td_error": [1.0, nan, 0.0]}, ValueError, ("td_error", "finite", "nan")),
    ({"td_error": [1.0, -inf, 0.0]}, ValueError, ("td_error", "finite", "-inf")),
    ({"priority": [1.0, nan, 0.0]}, ValueError, ("priority", "finite", "nan")),
    ({"priority": [1.0, -0.5, 0.0]}, ValueError, ("priority", "0 or more", "-0.5")),
    ({"td_error": [1.0, 2.0]}, ValueError, ("td_error", "(3,)", "(2,)")),
    ({"td_error": 1.0}, ValueError, ("td_error", "(3,)", "()")),
    ({"td_error": ["a", "b", "c"]}, TypeError, ("td_error", "numbers")),
    ({"td_error": None}, TypeError, ("td_error", "priority")),
    ({"td_error": [1.0, 1.0, 1.0], "priority": [1.0, 1.0, 1.0]}, TypeError, ("td_error", "priority")),
    ({"row": [25, 26, 33], "td_error": [1.0, 1.0, 1.0]}, ValueError, ("row", "0 to 32", "33")),
    ({"row": [-1, 26, 27], "td_error": [1.0, 1.0, 1.0]}, ValueError, ("row", "0 to 32", "-1")),
    ({"row": [25.0, 26.0, 27.0], "td_error": [1.0, 1.0, 1.0]}, TypeError, ("row", "integers", "float64")),
    ({"row": [[25], [26]], "td_error": [[1.0], [1.0]]}, ValueError, ("row", "one axis", "(2, 1)")),
    ({"row": "x", "td_error": [1.0]}, TypeError, ("row", "integers")),
]


@pytest.mark.parametrize(("arguments", "error", "words"), UPDATES)
def test_a_bad_update_is_refused(arguments: dict[str, Any], error: type[Exception], words: tuple[str, ...]) -> None:
    replay = filled()
    full = {"row": [25, 26, 27], **arguments}
    refused(replay, lambda: replay.update_priorities(**full), error, *words)


def test_a_late_update_is_passed_over_and_counted() -> None:
    replay = filled()
    before = state_of(replay)
    replay.update_priorities([0, 5, 12], [1e9, 1e9, 1e9])
    assert replay.stats()["late_priority_updates"] == 3
    assert_same_state(state_of(replay), {**before, "late": 3})
    replay.update_priorities([3, 20], [1.0, 2.0])  # one late, one live
    assert replay.stats()["late_priority_updates"] == 4
    assert replay.sampler == SAMPLER


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ([12], ValueError, ("row", "13 to 32", "12")),
        ([33], ValueError, ("row", "13 to 32", "33")),
        ([-1], ValueError, ("row", "13 to 32", "-1")),
        ([13.0], TypeError, ("row", "integers")),
        (13, ValueError, ("row", "one axis")),
    ],
)
def test_reading_what_is_not_there_is_refused(row: Any, error: type[Exception], words: tuple[str, ...]) -> None:
    replay = filled()
    refused(replay, lambda: replay.read(row), error, *words)


def test_the_episode_of_a_row_that_is_gone_is_refused() -> None:
    replay = filled()
    refused(replay, lambda: replay.episode(12), ValueError, "row", "13 to 32", "12")
    refused(replay, lambda: replay.episode(33), ValueError, "row", "13 to 32", "33")
    refused(replay, lambda: replay.episode(13.0), TypeError, "row", "integers")  # type: ignore[arg-type]


def test_reading_no_rows_gives_an_empty_batch() -> None:
    replay = filled()
    assert len(replay.read(np.empty(0, np.int64))) == 0
    replay.update_priorities(np.empty(0, np.int64), np.empty(0))


CONSTRUCTIONS: list[tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = [
    ({"observation_space": 3}, TypeError, ("observation_space", "gymnasium space", "int")),
    ({"action_space": None}, TypeError, ("action_space", "gymnasium space", "NoneType")),
    ({"observation_space": gym.spaces.Text(4)}, TypeError, ("observation_space", "Text", "Box")),
    (
        {"observation_space": gym.spaces.Dict(place=gym.spaces.Discrete(3), mission=gym.spaces.Text(4))},
        TypeError,
        ("Text of observation['mission']", "FilterObservation"),
    ),
    ({"action_space": gym.spaces.Dict(a=gym.spaces.Discrete(2))}, TypeError, ("action_space", "Discrete")),
    ({"observation_space": gym.spaces.Box(0, 1, (0,))}, ValueError, ("observation_space", "no data")),
    ({"capacity": 0}, ValueError, ("capacity", "1 or more", "0")),
    ({"capacity": -5}, ValueError, ("capacity", "1 or more", "-5")),
    ({"capacity": 10.0}, TypeError, ("capacity", "int", "float")),
    ({"capacity": True}, TypeError, ("capacity", "int", "bool")),
    ({"capacity": 10**13}, ValueError, ("capacity", "10000000000000", "cannot fit")),
    ({"capacity": 2**29 + 1}, ValueError, ("capacity", "cannot fit")),
    ({"capacity": 3, "num_envs": 4}, ValueError, ("capacity", "num_envs=4", "3")),
    ({"num_envs": 0}, ValueError, ("num_envs", "1 or more", "0")),
    ({"n_step": 0}, ValueError, ("n_step", "1 or more", "0")),
    ({"n_step": 1.5}, TypeError, ("n_step", "int", "float")),
    ({"gamma": 1.5}, ValueError, ("gamma", "between 0 and 1", "1.5")),
    ({"gamma": nan}, ValueError, ("gamma", "between 0 and 1", "nan")),
    ({"gamma": "0.9"}, ValueError, ("gamma", "between 0 and 1", "'0.9'")),
    ({"frame_stack": 3}, ValueError, ("frame_stack=3", "first or last axis")),
    ({"frame_stack": 4}, ValueError, ("frame_stack=4", "multiple of 8 bytes", "2")),
    ({"frame_stack": 0}, ValueError, ("frame_stack", "1 or more")),
    ({"autoreset": "sometimes"}, ValueError, ("autoreset", "next_step", "sometimes")),
    ({"check_autoreset": "yes"}, ValueError, ("check_autoreset", "refuse", "yes")),
    ({"cast": 1}, TypeError, ("cast", "True or False", "1")),
    ({"seed": -1}, ValueError, ("seed", "0 or more", "-1")),
    ({"seed": 1.0}, TypeError, ("seed", "int", "float")),
    ({"seed": None}, TypeError, ("seed", "int", "NoneType")),
    ({"sampler": Uniform}, TypeError, ("sampler", "Uniform()")),
    ({"sampler": "uniform"}, TypeError, ("sampler", "uniform")),
    ({"encoder": RandomProjection}, TypeError, ("encoder", "RandomProjection()")),
    ({"encoder": Quantized((0.1, 0.2))}, ValueError, ("step", "2 entries", "8")),
]


@pytest.mark.parametrize(("changes", "error", "words"), CONSTRUCTIONS)
def test_a_bad_construction_is_refused(changes: dict[str, Any], error: type[Exception], words: tuple[str, ...]) -> None:
    arguments = {"observation_space": PIXELS, "action_space": gym.spaces.Discrete(4), "capacity": 20, **changes}
    with pytest.raises(error) as caught:
        Replay(**arguments)
    for word in words:
        assert word in str(caught.value), str(caught.value)


CONFIGURATIONS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Topological(roots=0), ValueError, "roots must be an int from 1 to 2147483647, got 0"),
    (lambda: Topological(roots=2.0), ValueError, "roots"),  # type: ignore[arg-type]
    (lambda: Topological(predecessors=0), ValueError, "predecessors must be an int of 1 or more, or None, got 0"),
    (lambda: Topological(start="terminals"), TypeError, "start"),  # type: ignore[arg-type]
    (lambda: Topological(trees="both"), ValueError, "trees must be one of"),  # type: ignore[arg-type]
    (lambda: Topological(draw="best"), ValueError, "draw must be one of"),  # type: ignore[arg-type]
    (lambda: Topological(fallback="none"), ValueError, "fallback must be one of"),  # type: ignore[arg-type]
    (lambda: Topological(shuffle=-1), ValueError, "shuffle"),
    (lambda: Terminals(candidates=0), ValueError, "candidates must be an int from 1 to 1024, got 0"),
    (lambda: Terminals(candidates=True), ValueError, "candidates"),
    (lambda: PseudoTerminals(kappa=0.0), ValueError, "kappa must be positive and finite, got 0.0"),
    (lambda: PseudoTerminals(kappa=nan), ValueError, "kappa"),
    (lambda: PseudoTerminals(kappa=True), ValueError, "kappa must be positive and finite, got True"),
    (lambda: Mixture([(True, Uniform())]), ValueError, "a share must be 0 or more and finite, got True"),
    (lambda: Prioritized(alpha=-1), ValueError, "alpha must be 0 or more and finite, got -1"),
    (lambda: Prioritized(alpha=True), ValueError, "alpha must be 0 or more and finite, got True"),
    (lambda: Prioritized(beta=nan), ValueError, "beta"),
    (lambda: Prioritized(epsilon=0), ValueError, "epsilon must be positive and finite, got 0"),
    (lambda: Prioritized(clip=0.0), ValueError, "clip"),
    (lambda: Prioritized(beta_rows=0), ValueError, "beta_rows"),
    (lambda: Prioritized(normalise="max"), ValueError, "normalise must be"),  # type: ignore[arg-type]
    (lambda: EpisodicBackward(fallback="none"), ValueError, "fallback must be one of"),  # type: ignore[arg-type]
    (lambda: RandomProjection(dim=0), ValueError, "dim must be between 1 and 64, got 0"),
    (lambda: RandomProjection(dim=1.0), TypeError, "dim must be an int, got float"),  # type: ignore[arg-type]
    (lambda: Quantized(0.0), ValueError, "step must be a number above 0, or one for each entry, got 0.0"),
    (lambda: Quantized("a"), ValueError, "step must be a number above 0, or one for each entry, got 'a'"),  # type: ignore[arg-type]
    (lambda: Mixture([Uniform()]), TypeError, r"parts must be pairs \(share, sampler\)"),  # type: ignore[list-item]
    (lambda: Quantized((0.1, nan)), ValueError, "step"),
]


@pytest.mark.parametrize(("make", "error", "words"), CONFIGURATIONS)
def test_a_bad_configuration_is_refused(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


class _Failing(LiveEncoder):
    words = 1

    def encode(self, observations: Any) -> Any:
        if (np.asarray(observations) == 3).any():
            raise RuntimeError("no key for 3")
        if (np.asarray(observations) == 4).any():
            return np.zeros(1, np.float64)
        return np.asarray(observations, np.int64).reshape(-1, 1)


@dataclass(frozen=True)
class _FailingConfig:
    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> _Failing:
        return _Failing()


def test_an_encoder_that_fails_leaves_the_replay_as_it_was() -> None:
    space = gym.spaces.Discrete(6)
    replay = Replay(space, gym.spaces.Discrete(2), 8, Topological(), encoder=_FailingConfig())
    replay.add(0, 0, 0.0, 1, True, False)
    with pytest.raises(RuntimeError, match="no key for 3"):
        replay.add(2, 0, 0.0, 3, False, False)
    with pytest.raises(ValueError, match=r"encoder: _Failing.encode must return integers of shape \(2, 1\)"):
        replay.add(2, 0, 0.0, 4, False, False)
    assert len(replay) == 1
    replay.add(1, 0, 0.0, 0, False, False)
    assert replay.graph.num_edges == 2
    assert set(replay.sample(8).row.tolist()) == {0, 1}
