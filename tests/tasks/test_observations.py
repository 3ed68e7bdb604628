"""Observations of environments from other packages: parts are joined, text is left out, and the user is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import inspect_env
from backsweep.cli import main
from backsweep.tasks.environments import ForeignEnvironments
from backsweep.tasks.observations import OneArray, as_trained, with_one_array, without_text

IMAGE = gym.spaces.Box(0, 255, (2, 2), np.uint8)
TEXT = gym.spaces.Text(10)


class Showing(gym.Env[Any, int]):
    """Shows samples of a space, ten to an episode."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = space, gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        self.observation_space.seed(3 if seed is None else seed)
        return self.observation_space.sample(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.observation_space.sample(), 0.0, self.time == 10, False, {}


NESTED = gym.spaces.Dict(
    {
        "where": gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.MultiBinary(2))),
        "look": gym.spaces.Dict({"image": IMAGE, "words": TEXT}),
        "mission": TEXT,
    }
)


def test_parts_follow_each_other_without_text() -> None:
    env = with_one_array(Showing(NESTED))
    assert isinstance(env, OneArray)
    space = env.observation_space
    assert (space.shape, space.dtype) == ((9,), np.uint8)
    seen = env.reset(seed=0)[0]
    assert space.contains(seen)
    raw = Showing(NESTED).reset(seed=0)[0]
    place, bits = raw["where"]
    expected = [*raw["look"]["image"].reshape(-1), *(place == np.arange(3)), *bits]
    np.testing.assert_array_equal(seen, expected)
    assert env.remark() == (
        "text (look/words, mission) is left out; the trainer joins the parts look/image, where/0, where/1 to one "
        "array of 9 numbers"
    )


def test_what_is_inspected_has_the_numbers_beside_text_too() -> None:
    env = without_text(Showing(NESTED))
    np.testing.assert_array_equal(env.reset(seed=0)[0], with_one_array(Showing(NESTED)).reset(seed=0)[0])


@pytest.mark.parametrize(
    ("part", "dtype"),
    [(gym.spaces.Box(-1, 1, (2,), np.float32), np.float32), (gym.spaces.Box(0, 9, (2,), np.int64), np.int64)],
)
def test_numbers_take_no_more_memory_than_their_widest_part(part: gym.Space[Any], dtype: type) -> None:
    env = with_one_array(Showing(gym.spaces.Tuple((gym.spaces.Discrete(4, start=2), part))))
    assert env.observation_space.dtype == dtype
    assert env.reset(seed=1)[0].dtype == dtype
    assert env.observation_space.contains(env.reset(seed=1)[0])


def test_a_single_part_stays_what_it_is() -> None:
    env = with_one_array(Showing(gym.spaces.Dict({"image": IMAGE, "mission": TEXT})))
    assert env.observation_space is IMAGE
    assert IMAGE.contains(env.reset(seed=0)[0])
    assert isinstance(env, OneArray)
    assert env.remark() == "text (mission) is left out"
    plain = Showing(IMAGE)
    assert with_one_array(plain) is plain
    assert without_text(plain) is plain
    assert as_trained(plain) == ""


LARGE = gym.spaces.Dict({"image": gym.spaces.Box(0, 255, (80, 80), np.uint8), "place": gym.spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (TEXT, r"must have numbers to learn from, got Text\(1, 10"),
        (gym.spaces.Dict({"words": TEXT}), "must have numbers to learn from"),
        (gym.spaces.Sequence(IMAGE), "observations of Sequence cannot be learned from"),
        (LARGE, "6,403 numbers together, too many to join"),
    ],
    ids=["text", "only text", "sequence", "large"],
)
def test_what_cannot_be_one_array_is_refused_with_a_way_out(space: gym.Space[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        ForeignEnvironments([lambda: Showing(space)], 0)
    assert "register the environment with a wrapper" in str(refused.value)


def test_inspection_says_what_the_trainer_makes_of_it() -> None:
    found = inspect_env(Showing(NESTED), steps=100)
    assert found.note == as_trained(Showing(NESTED))
    assert str(found).endswith(f"note: {found.note}")
    assert inspect_env(Showing(IMAGE), steps=100).note == ""
    assert "note" not in str(inspect_env(Showing(IMAGE), steps=100))
    assert "cannot take these observations: the observation's parts" in inspect_env(Showing(LARGE), steps=100).note
    pair = gym.spaces.Tuple((TEXT, gym.spaces.Discrete(3)))
    assert inspect_env(Showing(pair), steps=100).note == "text (0) is left out"


@pytest.fixture
def registered() -> Iterator[None]:
    gym.register("Nested-v0", lambda: Showing(NESTED))
    yield
    del gym.registry["Nested-v0"]


@pytest.mark.usefixtures("registered")
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium's checker
def test_it_trains(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--steps", "60", "--warmup-steps", "30", "--evaluation-episodes", "2", "--probe-size", "16"]
    assert main(["train", "Nested-v0", *quick, "--folder", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "Nested-v0: text (look/words, mission) is left out; the trainer joins" in shown
    assert "Nested-v0: the network takes 9 numbers, linear layers 256 256" in shown
    assert main(["evaluate", str(tmp_path / "run")]) == 0
