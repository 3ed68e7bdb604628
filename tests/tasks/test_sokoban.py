"""Sokoban beside gym-sokoban: moves, rewards and images in lock-step, the generator's search, the solver."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from placing import place_room
from scipy import stats
from sokoban_oracle import original, original_image, room_utils

from backsweep import Replay
from backsweep.tasks import TASKS, make, solve
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.sokoban import SokobanLanes, SokobanOptions, codes, generator_kernels
from backsweep.tasks.sokoban.lanes import search_set

TASK_IDS = [task.id for task in TASKS.values() if task.family == "sokoban"]
RESTING = np.zeros(1, dtype=np.bool_)
EVERY = np.ones(1, dtype=np.bool_)


def fresh_lanes(task: str, seed: int, **given: Any) -> SokobanLanes:
    """Return a lane with a level on it."""
    lanes = SokobanLanes(TASKS[task].options(**given), 1)
    lanes.streams[0] = seed
    lanes.reset(EVERY)
    return lanes


@pytest.mark.parametrize(
    ("size", "image_size", "bands"),
    [((6, 6), 84, 6), ((7, 7), 84, 7), ((5, 5), 84, 1), ((6, 7), 84, 6), ((6, 6), 30, 1)],
)
def test_images_are_divided_into_rows_of_the_room(size: tuple[int, int], image_size: int, bands: int) -> None:
    options = SokobanOptions(height=size[0], width=size[1], boxes=1, image_size=image_size)
    assert options.bands == bands
    lanes = SokobanLanes(options, 1)
    Replay(lanes.single_observation_space, lanes.single_action_space, 100, frame_stack=options.bands)  # takes them


def grids(lanes: SokobanLanes, lane: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a lane's two grids as (height, width) arrays."""
    shape = (lanes.options.height, lanes.options.width)
    return lanes.fixed[lane].reshape(shape), lanes.rooms[lane].reshape(shape)


def step_both(env: Any, lanes: SokobanLanes, action: int) -> tuple[float, bool, bool]:
    """Step the original and ours with an action of the package's numbering and compare everything."""
    _, reward, done, info = env.step(action, observation_mode="tiny_rgb_array")
    lanes.step(np.array([action - len(codes.ACTION_NAMES) + len(lanes.options.action_names)]), RESTING)
    solved, out_of_time = bool(info.get("all_boxes_on_target", False)), bool(info.get("maxsteps_used", False))
    assert lanes.rewards[0] == reward
    assert (bool(lanes.terminated[0]), bool(lanes.truncated[0])) == (solved, out_of_time)
    assert done == (solved or out_of_time)
    np.testing.assert_array_equal(lanes.observations[0], original_image(env))
    np.testing.assert_array_equal(lanes.rooms[0], env.room_state.reshape(-1))
    return float(reward), solved, out_of_time


@pytest.mark.parametrize("actions", ["paper", "package"])
@pytest.mark.parametrize("task", TASK_IDS)
def test_random_play(task: str, actions: str) -> None:
    generator = np.random.default_rng(0)
    for seed in range(4):
        lanes = fresh_lanes(task, seed, actions=actions)
        env = original(lanes)
        np.testing.assert_array_equal(lanes.observations[0], original_image(env))
        ended = False
        while not ended:
            action = int(generator.integers(0 if actions == "package" else 1, 9))
            _, solved, out_of_time = step_both(env, lanes, action)
            ended = solved or out_of_time


@pytest.mark.parametrize("task", TASK_IDS)
def test_scripted_solutions(task: str) -> None:
    """Shortest solutions solve in both, also when the limit is reached on the solving step or one step before."""
    for seed in range(3):
        lanes = fresh_lanes(task, 100 + seed)
        path = solve(*grids(lanes))
        assert path is not None
        for limit in {120, len(path), max(len(path) - 1, 1)}:
            lanes = fresh_lanes(task, 100 + seed, max_steps=limit)
            env = original(lanes)
            for number, direction in enumerate(path[:limit], start=1):
                reward, solved, out_of_time = step_both(env, lanes, int(direction) + codes.FIRST_PUSH)
                assert (solved, out_of_time) == (number == len(path), number == limit)
            if solved:
                assert reward == pytest.approx(10.9)


def test_rewards_for_moving_a_box_on_and_off_its_target() -> None:
    lanes = SokobanLanes(SokobanOptions(height=5, width=7, boxes=2), 1)
    fixed = np.zeros((5, 7), dtype=np.uint8)
    fixed[1:3, 1:6] = codes.FLOOR
    # A second target keeps the room unsolved, so that the box can be pushed on.
    fixed[1, 3] = fixed[2, 5] = codes.TARGET
    room = fixed.copy()
    room[1, 1], room[1, 2], room[2, 3] = codes.PLAYER, codes.BOX, codes.BOX
    place_room(lanes, 0, fixed.reshape(-1), room.reshape(-1))
    env = original(lanes)
    push_right, move_right = 4, 8
    assert step_both(env, lanes, move_right)[0] == -0.1  # a move never pushes
    assert step_both(env, lanes, push_right)[0] == -0.1 + 1.0
    assert step_both(env, lanes, push_right)[0] == -0.1 - 1.0
    assert step_both(env, lanes, push_right)[0] == -0.1
    assert step_both(env, lanes, push_right)[0] == -0.1  # against the wall


@pytest.mark.parametrize("task", [*TASK_IDS, "sokoban/8x7-2"])
def test_reverse_play_finds_what_the_original_finds(task: str) -> None:
    """The same topology and placement give the same score, the same room and the same player."""
    options = make_options(task)
    random.seed(1)
    state = np.random.get_state()  # noqa: NPY002 (the original draws from numpy's global generator)
    np.random.seed(1)  # noqa: NPY002
    try:
        done = 0
        while done < 8:
            topology = room_utils.room_topology_generation(
                (options.height, options.width), 0.35, int(1.7 * (options.height + options.width))
            )
            try:
                room = room_utils.place_boxes_and_player(topology, options.boxes, False)
            except RuntimeError:
                continue
            structure, start = room.copy(), room.copy()
            structure[structure == codes.PLAYER] = codes.FLOOR
            start[start == codes.TARGET] = codes.BOX
            best, score, _ = room_utils.reverse_playing(start, structure)
            boxes = np.zeros(options.boxes, dtype=np.int64)
            our_score, our_player = generator_kernels.play_backwards(
                structure.reshape(-1).astype(np.uint8),
                int(np.flatnonzero(room == codes.PLAYER)[0]),
                options.width,
                boxes,
                *search_set(options),
            )
            assert our_score == score
            assert our_player == np.flatnonzero(best == codes.PLAYER)[0]
            np.testing.assert_array_equal(np.sort(boxes), np.flatnonzero(np.isin(best, (3, 4))))
            done += 1
    finally:
        np.random.set_state(state)  # noqa: NPY002


def make_options(task: str) -> SokobanOptions:
    from backsweep.tasks import find_task

    options = find_task(task).options()
    assert isinstance(options, SokobanOptions)
    return options


@pytest.mark.parametrize("task", ["sokoban/5x5-1", "sokoban/5x5-2", "sokoban/6x6-2", "sokoban/7x7-1"])
def test_rooms_come_from_the_originals_distribution(task: str) -> None:
    options = make_options(task)
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    originals = []
    try:
        while len(originals) < 400:
            try:
                fixed, room, _ = room_utils.generate_room(
                    (options.height, options.width),
                    num_steps=int(1.7 * (options.height + options.width)),
                    num_boxes=options.boxes,
                )
            except (RuntimeError, RuntimeWarning):
                continue
            originals.append((fixed.astype(np.uint8), room.astype(np.uint8)))
    finally:
        np.random.set_state(state)  # noqa: NPY002
    lanes = SokobanLanes(options, 4_000)
    lanes.streams[:] = np.arange(4_000)
    lanes.reset(np.ones(4_000, dtype=np.bool_))
    ours = [grids(lanes, lane) for lane in range(4_000)]

    def floor_cells(fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> int:
        return int((fixed != codes.WALL).sum())

    def player_cell(fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> int:
        return int(np.flatnonzero(room == codes.PLAYER)[0])

    def first_target(fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> int:
        return int(np.flatnonzero(fixed == codes.TARGET)[0])

    def solution_length(fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> int:
        path = solve(fixed, room)
        assert path is not None
        return len(path)

    for feature in (floor_cells, player_cell, first_target, solution_length):
        left = np.array([feature(*grid) for grid in originals])
        right = np.array([feature(*grid) for grid in ours])
        assert two_sample(left, right) > 1e-4, feature.__name__


def two_sample(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return the p-value of a chi-square test that two samples share a distribution; rare values are pooled."""
    size = int(max(left.max(), right.max())) + 1
    table = np.stack([np.bincount(left, minlength=size), np.bincount(right, minlength=size)])
    rare = table.sum(axis=0) < 100
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def test_levels_start_unsolved_and_solvable() -> None:
    for task in TASK_IDS:
        lanes = SokobanLanes(make_options(task), 200)
        lanes.streams[:] = np.arange(200)
        lanes.reset(np.ones(200, dtype=np.bool_))
        boxes = lanes.options.boxes
        assert ((lanes.rooms == codes.BOX).sum(axis=1) == boxes).all()
        assert ((lanes.rooms == codes.TARGET).sum(axis=1) == boxes).all()
        assert ((lanes.rooms == codes.PLAYER).sum(axis=1) == 1).all()
        for lane in range(50):
            path = solve(*grids(lanes, lane))
            assert path is not None
            assert boxes <= len(path) <= 120


def slow_shortest(fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> int | None:
    """Return the length of a shortest solution by a plain search, the solver's twin."""
    start = (
        int(np.flatnonzero(room == codes.PLAYER)[0]),
        frozenset(np.flatnonzero((room == codes.BOX) | (room == codes.BOX_ON_TARGET)).tolist()),
    )
    goal = frozenset(np.flatnonzero(fixed == codes.TARGET).tolist())
    walls = frozenset(np.flatnonzero(fixed == codes.WALL).tolist())
    width, seen, layer, length = fixed.shape[1], {start}, [start], 0
    while layer:
        if any(boxes == goal for _, boxes in layer):
            return length
        following = []
        for player, boxes in layer:
            for offset in (-width, width, -1, 1):
                there, beyond = player + offset, player + 2 * offset
                if there in walls or (there in boxes and (beyond in walls or beyond in boxes)):
                    continue
                moved = (there, (boxes - {there}) | {beyond} if there in boxes else boxes)
                if moved not in seen:
                    seen.add(moved)
                    following.append(moved)
        layer, length = following, length + 1
    return None


@pytest.mark.parametrize("task", ["sokoban/5x5-2", "sokoban/6x6-2", "sokoban/7x7-1"])
def test_solver_is_optimal(task: str) -> None:
    for seed in range(12):
        fixed, room = grids(fresh_lanes(task, seed))
        path = solve(fixed, room)
        assert path is not None
        assert len(path) == slow_shortest(fixed, room)


def test_solver_refusals_and_hopeless_rooms() -> None:
    fixed = np.zeros((5, 5), dtype=np.uint8)
    fixed[1:4, 1:4] = codes.FLOOR
    fixed[2, 2] = codes.TARGET
    room = fixed.copy()
    room[1, 1], room[3, 3] = codes.BOX, codes.PLAYER  # a box in a corner
    assert solve(fixed, room) is None
    assert slow_shortest(fixed, room) is None
    with pytest.raises(ValueError, match="one player"):
        solve(fixed, fixed)
    with pytest.raises(ValueError, match="a box per target"):
        solve(np.where(fixed == codes.TARGET, codes.FLOOR, fixed).astype(np.uint8), room)
    with pytest.raises(ValueError, match="one shape"):
        solve(fixed, room[:4])
    with pytest.raises(MemoryError, match="states met"):
        solve(*hard_room(), most_states=1)


def hard_room() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return an open room whose search outgrows the first space it is given."""
    fixed = np.zeros((12, 12), dtype=np.uint8)
    fixed[1:11, 1:11] = codes.FLOOR
    fixed[1, 1] = fixed[1, 10] = fixed[10, 1] = codes.TARGET
    room = fixed.copy()
    room[8, 8] = room[8, 5] = room[5, 8] = codes.BOX
    room[9, 9] = codes.PLAYER
    return fixed, room


def test_return_bounds_hold_and_the_lower_one_is_met() -> None:
    env = make("sokoban/5x5-1", num_envs=64, seed=0)
    assert isinstance(env, LaneVectorEnv)
    low, high = TASKS["sokoban/5x5-1"].return_bounds or (0.0, 0.0)
    assert (low, high) == pytest.approx((-12.0, 10.9))
    generator = np.random.default_rng(0)
    env.reset()
    returns, running = [], np.zeros(64)
    for _ in range(400):
        _, rewards, terminated, truncated, _ = env.step(generator.integers(0, 8, 64))
        running += rewards
        ended = terminated | truncated
        returns += running[ended].tolist()
        running[ended] = 0.0
    assert low - 1e-9 <= min(returns)
    assert max(returns) == pytest.approx(high)  # some room is solved by its first push


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("sokoban/4x4-1", "no space to push"),
        ("sokoban/5x5-5", "too few for 5 boxes"),
        ("sokoban/2x9-1", "height must be in"),
        ("sokoban/5x5-0", "boxes must be in"),
        ("sokoban/3x6-2", "too few for 2 boxes"),
    ],
)
def test_rooms_that_cannot_be(task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(task)


def test_a_room_with_space_that_can_never_be_played() -> None:
    with pytest.raises(ValueError, match="can be played"):
        make("sokoban/3x9-3")  # a corridor: the player is never next to more than two boxes
