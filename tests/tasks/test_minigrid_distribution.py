"""Levels come from the originals' distributions: both samples against the list of all starts, by chi-square."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from minigrid_oracle import cells_of, original, row_of
from numpy.typing import NDArray
from scipy import stats

from backsweep.tasks import TASKS
from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions, codes
from backsweep.tasks.minigrid.starts import Starts, all_starts

TASK_IDS = [task.id for task in TASKS.values() if task.family == "minigrid"]
SIZES = [
    ("doorkey", 5, None),
    ("doorkey", 7, None),
    ("redbluedoors", 3, None),
    ("redbluedoors", 5, None),
    ("lavacrossing", 7, 3),
    ("simplecrossing", 5, 2),
]
UNLIKELY = 1e-4  # seeds are fixed, so a test that passes goes on passing


def start_key(cells: NDArray[np.uint8], row: NDArray[np.int64]) -> bytes:
    """Return what tells starts apart."""
    return cells.tobytes() + bytes(row[[codes.X, codes.Y, codes.DIRECTION]].astype(np.uint8))


def goodness_of_fit(counts: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """Return the chi-square p-value; rare bins are pooled, in order, until each pool expects five."""
    expected = probability * counts.sum()
    pools = np.minimum(np.cumsum(expected) // 5.0, np.floor(expected.sum() / 5.0) - 1).astype(np.int64)
    _, pools = np.unique(pools, return_inverse=True)
    if pools.max() == 0:
        return 1.0
    return float(stats.chisquare(np.bincount(pools, counts), np.bincount(pools, expected)).pvalue)


def checked_counts(starts: Starts, keys: list[bytes]) -> NDArray[np.int64]:
    """Return how often each start was drawn; a draw that is no start is an error."""
    places = {
        start_key(cells, row): place for place, (cells, row) in enumerate(zip(starts.cells, starts.lanes, strict=True))
    }
    assert len(places) == len(starts.probability)
    return np.bincount([places[key] for key in keys], minlength=len(places))


def our_draws(options: MiniGridOptions, number: int) -> list[bytes]:
    lanes = MiniGridLanes(options, number)
    lanes.streams[:] = np.random.default_rng(4).integers(0, 2**63, number, dtype=np.uint64)
    lanes.reset(np.ones(number, dtype=np.bool_))
    return [start_key(cells, row) for cells, row in zip(lanes.cells, lanes.lanes, strict=True)]


def original_draws(options: MiniGridOptions, number: int) -> list[bytes]:
    env: Any = original(options)
    env.gen_obs = dict  # the partial view is not looked at here
    env.reset(seed=11)
    keys = []
    for _ in range(number):
        env.reset()
        keys.append(start_key(cells_of(env), row_of(env)))
    return keys


def assert_same_distribution(options: MiniGridOptions, ours: int, originals: int) -> None:
    starts = all_starts(options)
    assert starts.probability.sum() == pytest.approx(1.0, abs=1e-12)
    for keys in (our_draws(options, ours), original_draws(options, originals)):
        assert goodness_of_fit(checked_counts(starts, keys), starts.probability) > UNLIKELY


@pytest.mark.parametrize("task", TASK_IDS)
def test_levels_of_every_task(task: str) -> None:
    assert_same_distribution(TASKS[task].options(image_size=1), 60_000, 2_500)


@pytest.mark.parametrize(("level", "size", "crossings"), SIZES)
def test_levels_at_other_sizes(level: str, size: int, crossings: int | None) -> None:
    assert_same_distribution(MiniGridOptions(level=level, size=size, crossings=crossings, image_size=1), 20_000, 600)


@pytest.mark.parametrize("task", TASK_IDS)
def test_marginals_of_the_original(task: str) -> None:
    """With thousands of starts a joint test is blunt; cell by cell and direction by direction it is sharp."""
    options = TASKS[task].options(image_size=1)
    starts = all_starts(options)
    counts = checked_counts(starts, original_draws(options, 2_500))
    agents = starts.lanes[:, codes.Y] * options.width + starts.lanes[:, codes.X]
    keys = ((starts.cells >= codes.KEY) & (starts.cells < codes.DOOR_OPEN)).argmax(axis=1)
    for feature in (agents, starts.lanes[:, codes.DIRECTION], starts.lanes[:, codes.DOOR_A], keys):
        values = np.unique(feature, return_inverse=True)[1]
        assert goodness_of_fit(
            np.bincount(values, counts).astype(np.int64), np.bincount(values, starts.probability)
        ) > (UNLIKELY)


def test_unlock_never_starts_facing_an_object() -> None:
    options = TASKS["minigrid/unlock"].options(image_size=1)
    lanes = MiniGridLanes(options, 20_000)
    lanes.streams[:] = np.arange(20_000)
    lanes.reset(np.ones(20_000, dtype=np.bool_))
    offsets = np.array([1, options.width, -1, -options.width])
    row = lanes.lanes
    ahead = row[:, codes.Y] * options.width + row[:, codes.X] + offsets[row[:, codes.DIRECTION]]
    seen = lanes.cells[np.arange(20_000), ahead]
    assert set(np.unique(seen)) == {codes.EMPTY, codes.WALL}
