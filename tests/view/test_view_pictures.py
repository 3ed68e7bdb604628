"""Observations as pictures: what the page draws is what was stored."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from view_replays import played

from backsweep import Replay
from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.tiles import paint_tile
from backsweep.view import pictures
from backsweep.view.facts import read_facts
from backsweep.view.pictures import Pictures, make_pictures, picture_leaf


def redrawn(found: Pictures, state: int) -> NDArray[np.uint8]:
    """Put a picture together from its tiles, as the page does."""
    columns = -(-found.width // 8)
    rows = -(-found.height // 8)
    tiles = found.tiles[found.numbers[state]].reshape(rows, columns, 8, 8, 3)
    whole = tiles.transpose(0, 2, 1, 3, 4).reshape(rows * 8, columns * 8, 3)
    return whole[: found.height, : found.width]


def test_pictures_come_back_from_their_tiles() -> None:
    replay = played("minigrid/doorkey", 200)
    facts = read_facts(replay)
    found = make_pictures(replay.machinery.store, replay.observation_space, facts.observation)
    assert found is not None
    assert found.count == len(facts)
    batch = replay.read(np.arange(replay.oldest, replay.total))
    for row in (0, 50, 199):
        state = int(facts.row_source[row])
        np.testing.assert_array_equal(redrawn(found, state), batch.observation[row])
    assert len(found.tiles) < 0.2 * found.numbers.size  # tiles come again and again


def frames(space: gym.Space[Any], count: int, seed: int = 0) -> tuple[Replay, list[Any]]:
    """Return a replay of random observations, and those."""
    space.seed(seed)
    replay = Replay(space, gym.spaces.Discrete(2), count)
    seen = [space.sample() for _ in range(count + 1)]
    for before, after in itertools.pairwise(seen):
        replay.add(before, 0, 0.0, after, False, False)
    return replay, seen


def shown(replay: Replay, observation: Any) -> NDArray[np.uint8]:
    facts = read_facts(replay)
    found = make_pictures(replay.machinery.store, replay.observation_space, facts.observation)
    assert found is not None
    state = np.flatnonzero(facts.vertex == replay.graph.vertex(observation))[0]
    return redrawn(found, int(state))


@pytest.mark.parametrize(
    ("shape", "to_picture"),
    [
        ((20, 12, 3), lambda image: image),
        ((3, 20, 12), lambda image: image.transpose(1, 2, 0)),
        ((20, 12), lambda image: np.repeat(image[..., None], 3, axis=2)),
        ((20, 12, 1), lambda image: np.repeat(image, 3, axis=2)),
        ((4, 20, 12), lambda image: np.repeat(image[-1, ..., None], 3, axis=2)),
        ((200, 150, 3), lambda image: image[::3, ::3]),
    ],
)
def test_images_of_every_form(shape: tuple[int, ...], to_picture: Any) -> None:
    replay, seen = frames(gym.spaces.Box(0, 255, shape, np.uint8), 4)
    np.testing.assert_array_equal(shown(replay, seen[1]), to_picture(seen[1]))


def test_a_picture_inside_a_dict_is_found() -> None:
    image = gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)
    space = gym.spaces.Dict({"speed": gym.spaces.Box(-1, 1, (2,)), "camera": gym.spaces.Dict({"left": image})})
    assert picture_leaf(space) == 0
    replay, seen = frames(space, 3)
    np.testing.assert_array_equal(shown(replay, seen[2]), seen[2]["camera"]["left"])


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Discrete(5),
        gym.spaces.Box(-1, 1, (4,), np.float32),
        gym.spaces.Box(0, 255, (128,), np.uint8),
        gym.spaces.Box(-1, 1, (8, 8, 3), np.float32),
        gym.spaces.Box(0, 255, (2, 40), np.uint8),
    ],
)
def test_what_is_no_picture_has_none(space: gym.Space[Any]) -> None:
    assert picture_leaf(space) is None


def test_as_many_pictures_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    replay, _ = frames(gym.spaces.Box(0, 255, (16, 16, 3), np.uint8), 50)
    facts = read_facts(replay)
    monkeypatch.setattr(pictures, "BATCH", 10)
    monkeypatch.setattr(pictures, "MOST_BYTES", 25 * 16 * 16 * 3)
    found = make_pictures(replay.machinery.store, replay.observation_space, facts.observation)
    assert found is not None
    assert found.count == 20
    assert (found.numbers[:20] > 0).all()


def test_codes_of_minigrid_are_drawn_with_its_tiles() -> None:
    grid = np.zeros((1, 5, 6, 3), np.uint8)
    grid[..., 0] = pictures.EMPTY
    grid[0, 0] = [pictures.WALL, codes.GREY, 0]
    grid[0, 1, 2] = [pictures.DOOR, codes.BLUE, 2]
    grid[0, 2, 3] = [pictures.AGENT, codes.RED, codes.LEFT]
    grid[0, 4, 5] = [pictures.GOAL, codes.GREEN, 0]
    assert pictures.is_encoded(grid)
    (picture,) = pictures.draw_encoded(grid)
    assert picture.shape == (48, 40, 3)  # the second axis of the codes goes down

    def tile(x: int, y: int) -> NDArray[np.uint8]:
        return picture[8 * y : 8 * y + 8, 8 * x : 8 * x + 8]

    np.testing.assert_array_equal(tile(0, 3), paint_tile(codes.WALL, None))
    np.testing.assert_array_equal(tile(1, 2), paint_tile(codes.DOOR_LOCKED + codes.BLUE, None))
    np.testing.assert_array_equal(tile(2, 3), paint_tile(codes.EMPTY, codes.LEFT))
    np.testing.assert_array_equal(tile(4, 5), paint_tile(codes.GOAL, None))
    np.testing.assert_array_equal(tile(3, 1), paint_tile(codes.EMPTY, None))


def test_what_an_agent_sees_shows_the_agent() -> None:
    view = np.full((1, 7, 7, 3), [pictures.EMPTY, 0, 0], np.uint8)
    (picture,) = pictures.draw_encoded(view)
    np.testing.assert_array_equal(picture[48:, 24:32], paint_tile(codes.EMPTY, codes.UP))


def test_pixels_are_not_taken_for_codes() -> None:
    assert not pictures.is_encoded(np.full((2, 16, 16, 3), 200, np.uint8))
    assert not pictures.is_encoded(np.zeros((2, 16, 16, 3), np.uint8))
