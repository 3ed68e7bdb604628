"""The state of lanes from a file is checked before kernels follow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backsweep.tasks.environments import TaskEnvironments, make_environments
from backsweep.tasks.minigrid import codes as grid
from backsweep.tasks.sokoban import codes as room

TASKS = {"nchain-10": {}, "minigrid/redbluedoors": {}, "sokoban/5x5-1": {}}


def played(task: str) -> TaskEnvironments:
    envs = make_environments(task, None, 2, 3, TASKS[task])
    assert isinstance(envs, TaskEnvironments)
    envs.reset()
    rng = np.random.default_rng(0)
    for _ in range(150):
        envs.step(rng.integers(0, envs.num_actions, 2))
        envs.load_state(*envs.state())  # every state that is played is one
    return envs


def put(name: str, place: Any, value: int) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name][place] = value

    return change


def replace(name: str, how: Any) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = how(arrays[name])

    return change


EVERYWHERE = [
    replace("streams", lambda array: array[:1]),
    replace("rewards", lambda array: array.astype(np.float32)),
    lambda arrays: arrays.pop("terminated"),
]
CHANGES = {
    "nchain-10": [put("states", 0, 10), put("states", 1, -1), put("steps", 0, -1)],
    "minigrid/redbluedoors": [
        put("lanes", (0, grid.X), 0),
        put("lanes", (1, grid.X), 10**9),
        put("lanes", (0, grid.Y), -1),
        put("lanes", (0, grid.DIRECTION), 4),
        put("lanes", (0, grid.CARRYING), grid.WALL),
        put("lanes", (0, grid.DOOR_A), 10**6),
        put("lanes", (0, grid.DOOR_B), -2),
        put("lanes", (0, grid.STEPS), -1),
        put("cells", (0, 0), grid.EMPTY),
        put("cells", (0, 20), grid.NUM_CODES),
    ],
    "sokoban/5x5-1": [
        put("lanes", (0, room.PLAYER_CELL), 0),
        put("lanes", (0, room.PLAYER_CELL), 10**9),
        put("lanes", (0, room.BOXES_ON_TARGET), 7),
        put("lanes", (0, room.STEPS), 10**6),
        put("rooms", (0, 2), room.BOX),
        put("rooms", (0, 12), room.PLAYER + 1),
        put("fixed", (1, 3), room.FLOOR),
        put("fixed", (1, 12), room.BOX),
    ],
}


@pytest.mark.parametrize("task", TASKS)
def test_a_state_that_is_none_is_refused_and_changes_nothing(task: str) -> None:
    lanes = played(task).lanes
    for change in [*CHANGES[task], *EVERYWHERE]:
        before = lanes.state()
        arrays = {name: array.copy() for name, array in before.items()}
        change(arrays)
        with pytest.raises(ValueError, match=r"beyond|expected|missing|walls|no key|wrong|not where"):
            lanes.load_state(arrays)
        for name, array in lanes.state().items():
            np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("actions", [np.array([5]), np.array([-1]), np.array([0.0]), np.zeros((1, 1), np.int64)])
def test_actions_of_other_environments_are_checked(actions: Any) -> None:
    envs = make_environments(None, "CartPole-v1", 1, 3, {})
    envs.reset()
    arrays, values = envs.state()
    with pytest.raises(ValueError, match="actions of environment 0"):
        envs.load_state({**arrays, "actions0": actions}, values)
    with pytest.raises(ValueError, match="seed of environment 0"):
        envs.load_state(arrays, {**values, "seeds": [-1]})
    with pytest.raises(ValueError, match="number of environments"):
        envs.load_state(arrays, {**values, "seeds": []})
