"""Environments of many runs at once: each is that run's environment alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep.jit.compilation import most_threads, threads_in_use, use_threads
from backsweep.tasks.environments import Environments, Outcome, make_environments
from backsweep.tasks.fleet import FleetEnvironments, LostLanesError
from backsweep.tasks.lane_seeds import lane_seeds
from backsweep.tasks.lanes import Lanes
from backsweep.tasks.sokoban import lanes as sokoban_lanes

CASES: list[tuple[str, dict[str, Any]]] = [
    ("nchain-5", {"max_steps": 9, "random_action_chance": 0.3}),
    ("nchain-5", {"observation": "one_hot", "max_steps": 12}),
    ("minigrid/doorkey", {"size": 5, "max_steps": 25, "random_action_chance": 0.2, "image_size": 10}),
    ("minigrid/unlock", {"max_steps": 40, "image_size": 10}),
    ("minigrid/redbluedoors", {"size": 3, "max_steps": 30, "image_size": 10}),
    ("minigrid/lavacrossing-easy", {"max_steps": 35, "image_size": 10}),
    ("sokoban/5x5-1", {"max_steps": 20, "image_size": 10}),
    ("sokoban/6x5-2", {"max_steps": 15, "image_size": 10, "random_action_chance": 0.1, "actions": "package"}),
]
each_case = pytest.mark.parametrize(("task", "options"), CASES, ids=lambda value: str(value))


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let turns run on one thread, and on two however few lanes there are."""
    if request.param > most_threads():
        pytest.skip(f"there are {most_threads()} threads")
    for task, options in CASES:
        monkeypatch.setattr(type(family_of(task, options)), "LANES_WORTH_THREADS", 1)
    use_threads(request.param)
    yield request.param
    use_threads(None)


def family_of(task: str, options: dict[str, Any]) -> Lanes:
    return FleetEnvironments(task, options, [0])._lanes


def make_fleet(task: str, options: dict[str, Any], seeds: range) -> FleetEnvironments:
    return FleetEnvironments(task, options, [lane_seeds(seed, 1)[0] for seed in seeds])


def make_alone(task: str, options: dict[str, Any], seeds: range) -> list[Environments]:
    return [make_environments(task, None, 1, seed, options) for seed in seeds]


def expect_same(fleet: FleetEnvironments, index: int, outcome: Outcome) -> None:
    """Compare what the fleet says of a lane with what its run alone was told."""
    assert np.array_equal(fleet.observations[index], outcome.observations[0])
    assert fleet.observations.dtype == outcome.observations.dtype
    assert fleet.rewards[index] == outcome.rewards[0]
    assert fleet.terminated[index] == outcome.terminated[0]
    assert fleet.truncated[index] == outcome.truncated[0]
    assert fleet.ended[index] == (outcome.finals is not None)
    if outcome.finals is not None:
        assert np.array_equal(fleet.finals[index], outcome.finals[0])


def state_of(fleet: FleetEnvironments, index: int) -> dict[str, NDArray[Any]]:
    """Return the state of one environment, in the form of that run's own environments."""
    return fleet._lanes.state(slice(index, index + 1))


def same_states(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    return first.keys() == second.keys() and all(
        array.dtype == second[name].dtype and np.array_equal(array, second[name]) for name, array in first.items()
    )


@pytest.mark.kernels
@pytest.mark.usefixtures("threads")
@each_case
def test_each_environment_is_that_of_its_run_alone(task: str, options: dict[str, Any]) -> None:
    seeds = range(7)
    fleet, alone = make_fleet(task, options, seeds), make_alone(task, options, seeds)
    fleet.reset()
    for index, envs in enumerate(alone):
        assert np.array_equal(fleet.observations[index], envs.reset()[0])
    generator, ends = np.random.default_rng(1), 0
    for _ in range(100):
        actions = generator.integers(fleet.num_actions, size=len(seeds))
        fleet.step(actions)
        for index, envs in enumerate(alone):
            expect_same(fleet, index, envs.step(actions[index : index + 1]))
        ends += int(fleet.ended.sum())
    assert ends > len(seeds)
    for index, envs in enumerate(alone):
        assert same_states(state_of(fleet, index), envs.state()[0])


def test_many_lanes_are_shared_out_by_themselves() -> None:
    seeds = range(18)
    task, options = "sokoban/5x5-1", {"max_steps": 11, "image_size": 10}
    fleet, alone = make_fleet(task, options, seeds), make_alone(task, options, seeds)
    assert fleet.num_envs >= fleet._lanes.LANES_WORTH_THREADS
    fleet.reset()
    for envs in alone:
        envs.reset()
    generator, before = np.random.default_rng(1), threads_in_use()
    for _ in range(25):
        actions = generator.integers(fleet.num_actions, size=len(seeds))
        fleet.step(actions)
        for index, envs in enumerate(alone):
            expect_same(fleet, index, envs.step(actions[index : index + 1]))
    assert threads_in_use() == before


@pytest.mark.kernels
@pytest.mark.usefixtures("threads")
@each_case
def test_states_go_to_and_fro_between_fleets_and_runs_alone(task: str, options: dict[str, Any]) -> None:
    seeds, generator = range(3), np.random.default_rng(2)
    fleet, alone = make_fleet(task, options, seeds), make_alone(task, options, range(10, 13))
    fleet.reset()
    for envs in alone:
        envs.reset()
    for _ in range(13):
        actions = generator.integers(fleet.num_actions, size=3)
        fleet.step(actions)
        for index, envs in enumerate(alone):
            envs.step(actions[index : index + 1])
    # Runs that were alone go on in a fleet, and one of the fleet goes on alone.
    joined, (single,) = make_fleet(task, options, range(20, 23)), make_alone(task, options, range(30, 31))
    joined.reset()
    for index, envs in enumerate(alone):
        joined._lanes.load_state(envs.state()[0], slice(index, index + 1))
    single.load_state(state_of(fleet, 1), {})
    for _ in range(30):
        actions = generator.integers(fleet.num_actions, size=3)
        fleet.step(actions)
        joined.step(actions)
        expect_same(fleet, 1, single.step(actions[1:2]))
        for index, envs in enumerate(alone):
            expect_same(joined, index, envs.step(actions[index : index + 1]))


@pytest.mark.kernels
@pytest.mark.usefixtures("threads")
@each_case
def test_resting_lanes_stay_where_they_are(task: str, options: dict[str, Any]) -> None:
    seeds, generator = range(5), np.random.default_rng(3)
    fleet, alone = make_fleet(task, options, seeds), make_alone(task, options, seeds)
    fleet.reset()
    for envs in alone:
        envs.reset()
    for _ in range(60):
        actions, resting = generator.integers(fleet.num_actions, size=5), generator.random(5) < 0.4
        before = [state_of(fleet, index) for index in range(5)]
        fleet.step(actions, resting)
        for index, envs in enumerate(alone):
            if resting[index]:
                assert same_states(before[index], state_of(fleet, index))
                assert not fleet.ended[index]
            else:
                expect_same(fleet, index, envs.step(actions[index : index + 1]))


@pytest.mark.usefixtures("threads")
def test_a_lane_that_finds_no_room_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    task, options = "sokoban/6x6-2", {"image_size": 10, "max_steps": 5}
    seeds = [lane_seeds(seed, 1)[0] for seed in range(8)]
    monkeypatch.setattr(sokoban_lanes, "MOST_TRIES", 1)
    monkeypatch.setattr(sokoban_lanes.SokobanLanes, "_refuse_unplayable", lambda self: None)
    fleet = FleetEnvironments(task, options, seeds)
    with pytest.raises(LostLanesError, match="found no level") as caught:
        fleet.reset()
    assert 0 < len(caught.value.lanes) < 8
    for index, seed in enumerate(range(8)):
        assert str(index) in str(caught.value) or index not in caught.value.lanes
        alone = make_environments(task, None, 1, seed, options)
        if index in caught.value.lanes:
            with pytest.raises(RuntimeError, match="found no room"):
                alone.reset()
        else:
            assert np.array_equal(fleet.observations[index], alone.reset()[0])


def test_refusals() -> None:
    with pytest.raises(ValueError, match="task must be of nchain, minigrid, sokoban, got 'lunarlander'"):
        FleetEnvironments("lunarlander", {}, [0])
    with pytest.raises(ValueError, match="one seed or more"):
        FleetEnvironments("nchain-5", {}, [])
    fleet = FleetEnvironments("nchain-5", {}, [0, 1])
    with pytest.raises(RuntimeError, match="before reset"):
        fleet.step(np.zeros(2, np.int64))
    fleet.reset()
    with pytest.raises(ValueError, match=r"actions must be in 0\.\.1, got 2 in lane 1"):
        fleet.step(np.array([0, 2]))
    with pytest.raises(ValueError, match=r"count must be in 1\.\."):
        use_threads(0)


@pytest.mark.kernels
@pytest.mark.usefixtures("threads")
@each_case
def test_episodes_may_end_without_a_next_one(task: str, options: dict[str, Any]) -> None:
    seeds, generator = range(5), np.random.default_rng(4)
    fleet, alone = make_fleet(task, options, seeds), make_alone(task, options, seeds)
    fleet.reset()
    for envs in alone:
        envs.reset()
    resting = np.zeros(5, np.bool_)
    while not resting.all():
        actions = generator.integers(fleet.num_actions, size=5)
        fleet.step(actions, resting, restart=False)
        for index in np.flatnonzero(~resting).tolist():
            outcome = alone[index].step(actions[index : index + 1])
            assert fleet.ended[index] == (outcome.finals is not None)
            assert fleet.rewards[index] == outcome.rewards[0]
            last = outcome.observations[0] if outcome.finals is None else outcome.finals[0]
            assert np.array_equal(fleet.observations[index], last)
        resting |= fleet.ended
