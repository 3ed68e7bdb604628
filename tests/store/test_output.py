"""Output arrays are used again, but never while anybody holds a batch or anything made of it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import Batch, GraphValues, Replay
from worlds import ACTIONS, WORLDS, stacked

FIELDS = ["observation", "action", "reward", "next_observation", "terminated", "discount", "weight", "row", "source"]


def filled(world: str) -> Replay:
    replay = Replay(WORLDS[world].space, ACTIONS["discrete"].space, 100)
    observe = WORLDS[world].observe
    for t in range(100):
        replay.add(observe(t), t % 7, float(t), observe(t + 1), False, False)
    return replay


def arrays(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, dict):
        return [array for part in tree.values() for array in arrays(part)]
    if isinstance(tree, tuple):
        return [array for part in tree for array in arrays(part)]
    return [tree]


@pytest.mark.parametrize("world", ["uint8", "dict", "tuple"])
@pytest.mark.parametrize("field", FIELDS)
def test_one_field_that_is_held_stays_as_it_is(world: str, field: str) -> None:
    replay = filled(world)
    held = getattr(replay.read([3, 4, 5]), field)
    before = [array.copy() for array in arrays(held)]
    others = []
    for t in range(40):
        others.append(replay.read([t, t + 1, t + 2]))
        if t % 3 == 0:
            others.clear()
    for array, copy in zip(arrays(held), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_targets_that_are_held_stay_as_they_are() -> None:
    space = gym.spaces.Discrete(100)
    replay = Replay(space, ACTIONS["discrete"].space, 100, values=GraphValues())
    for t in range(99):
        replay.add(t, t % 7, float(t), t + 1, t % 10 == 9, False)
    replay.renew_values(lambda states: np.zeros((len(states), 7)), bounds=(-100.0, 100.0))
    held = replay.read([9, 19, 29]).target
    assert held is not None
    for t in range(40):
        replay.read([t, t + 1, t + 2])
    np.testing.assert_array_equal(held, [9.0, 19.0, 29.0])


def things_made_of(batch: Batch) -> list[Any]:
    tensors = batch.to_torch()
    return [
        batch,
        batch.observation[1:2],
        batch.observation.reshape(-1)[::2],
        memoryview(batch.next_observation),
        tensors,
        tensors.observation[0],
        tensors.reward.reshape(-1, 1),
        batch.reward.view(np.int32),
    ]


@pytest.mark.parametrize("kind", range(8))
def test_anything_made_of_a_batch_keeps_it(kind: int) -> None:
    replay = filled("uint8")
    held = things_made_of(replay.read([7, 8, 9]))[kind]
    observation = WORLDS["uint8"].observe
    for _ in range(10):
        replay.read([50, 60, 70])
    expected = {
        0: lambda: np.testing.assert_array_equal(held.observation, stacked([observation(s) for s in (7, 8, 9)])),
        1: lambda: np.testing.assert_array_equal(held, observation(8)[None]),
        2: lambda: np.testing.assert_array_equal(held, stacked([observation(s) for s in (7, 8, 9)]).reshape(-1)[::2]),
        3: lambda: np.testing.assert_array_equal(np.asarray(held), stacked([observation(s) for s in (8, 9, 10)])),
        4: lambda: np.testing.assert_array_equal(held.reward.numpy(), [7, 8, 9]),
        5: lambda: np.testing.assert_array_equal(held.numpy(), observation(7)),
        6: lambda: np.testing.assert_array_equal(held.numpy(), [[7], [8], [9]]),
        7: lambda: np.testing.assert_array_equal(held.view(np.float32), [7, 8, 9]),
    }
    expected[kind]()


def test_the_rows_of_a_batch_are_its_own() -> None:
    replay = filled("uint8")
    rows = np.array([5, 6, 7])
    batch = replay.read(rows)
    rows[:] = 0
    assert batch.row.tolist() == [5, 6, 7]


def test_a_batch_that_was_let_go_is_used_again() -> None:
    replay = filled("uint8")
    address = replay.read([1, 2]).observation.ctypes.data
    assert replay.read([3, 4]).observation.ctypes.data == address
    held = replay.read([3, 4])
    assert held.observation.ctypes.data == address
    assert replay.read([3, 4]).observation.ctypes.data != address


def test_a_dict_may_be_changed_by_its_owner() -> None:
    replay = filled("dict")
    batch = replay.read([1, 2])
    batch.observation.clear()
    batch.next_observation["more"] = 1
    del batch
    again = replay.read([1, 2])
    assert list(again.observation) == list(again.next_observation) == ["where", "bits", "kind"]


def test_batches_of_many_sizes_do_not_pile_up() -> None:
    replay = filled("uint8")
    for size in range(1, 90):
        replay.read(range(size))
    kept = sum(len(outputs) for outputs in replay._store.outputs._kept.values())
    assert kept <= 16
    address = replay.read(range(89)).observation.ctypes.data
    assert replay.read(range(89)).observation.ctypes.data == address
