"""Atari games against Gymnasium's own preprocessing, and the kernel that makes screens smaller."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from backsweep.tasks.atari.screen import area_table
from backsweep.tasks.atari.screen_kernels import shrink
from backsweep.tasks.make import make_single
from twins import screen as twin

OPTIONS: list[dict[str, Any]] = [{}, {"terminal_on_life_loss": True, "sticky_action_chance": 0.25}]


def check_alike(ours: NDArray[np.uint8], usual: NDArray[np.uint8]) -> None:
    """OpenCV may round a sum of floats otherwise on another processor, by one at most and seldom."""
    difference = np.abs(np.asarray(ours, np.int16) - np.asarray(usual, np.int16))
    assert difference.max() <= 1
    assert difference.mean() < 0.01


def usual_environment(game: str, options: dict[str, Any]) -> Any:
    import ale_py

    gymnasium.register_envs(ale_py)
    chance = options.get("sticky_action_chance", 0.0)
    env: Any = gymnasium.make(f"ALE/{game.capitalize()}-v5", frameskip=1, repeat_action_probability=chance)
    ends_with_life = options.get("terminal_on_life_loss", False)
    env = gymnasium.wrappers.AtariPreprocessing(env, terminal_on_life_loss=ends_with_life)
    return gymnasium.wrappers.FrameStackObservation(env, 4)


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "lives and sticky actions"])
@pytest.mark.parametrize("game", ["pong", "kangaroo"])
def test_steps_are_those_of_the_usual_preprocessing(game: str, options: dict[str, Any]) -> None:
    ours, usual = make_single(f"atari/{game}", **options), usual_environment(game, options)
    check_alike(ours.reset(seed=3)[0], usual.reset(seed=3)[0])
    seen, ends = set(), 0
    for action in np.random.default_rng(0).integers(usual.action_space.n, size=900).tolist():
        one, other = ours.step(action), usual.step(action)
        check_alike(one[0], other[0])
        assert one[1:4] == other[1:4]
        seen.add(one[0].tobytes())
        if one[2] or one[3]:
            ends += 1
            check_alike(ours.reset(seed=ends)[0], usual.reset(seed=ends)[0])
    assert len(seen) > 50
    assert ends > 0 or game == "pong"


def test_observations_are_not_overwritten_by_later_steps() -> None:
    env = make_single("atari/pong")
    first = env.reset(seed=0)[0]
    kept = first.copy()
    later = [env.step(1)[0] for _ in range(5)]
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(later[-2][1:], later[-1][:-1])


def test_a_step_before_the_first_reset_is_refused() -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        make_single("atari/pong").step(0)


def test_screens_can_be_rendered() -> None:
    env = make_single("atari/pong", "rgb_array")
    env.reset(seed=0)
    picture: Any = env.render()
    assert picture.shape == (210, 160, 3)
    env.close()


@pytest.mark.kernels
@given(st.data(), st.integers(3, 12), st.integers(3, 12))
def test_the_kernel_is_its_twin(data: st.DataObject, height: int, width: int) -> None:
    rows = area_table(height, data.draw(st.integers(-(-height // 2), height)))
    columns = area_table(width, data.draw(st.integers(-(-width // 2), width)))
    screens = data.draw(arrays(np.uint8, (2, height, width)))
    out = np.empty((len(rows[0]), len(columns[0])), np.uint8)
    shrink(screens, *columns, *rows, out)
    np.testing.assert_array_equal(out, twin.shrink(screens, columns, rows))


def test_every_part_of_a_picture_counts_once() -> None:
    for source, target in ((210, 84), (160, 84), (12, 12), (5, 2)):
        first, weights = area_table(source, target)
        np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-6)
        counted = np.zeros(source)
        for place, start in enumerate(first.tolist()):
            counted[start : start + 3] += weights[:, place]
        np.testing.assert_allclose(counted, target / source, atol=2e-3)


def test_too_small_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 3 pixels, got 210 pixels shown by 40"):
        area_table(210, 40)
