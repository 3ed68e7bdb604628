"""Minari data sets become replays and come back the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from backsweep import Replay, Topological
from backsweep.tasks import make

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def filled(task: str, steps: int, num_envs: int = 2, capacity: int = 10_000, **options: Any) -> Replay:
    """Return a replay of random play."""
    env = make(task, num_envs=num_envs, seed=0, **options)
    replay = Replay(env.single_observation_space, env.single_action_space, capacity, num_envs=num_envs)
    generator = np.random.default_rng(0)
    observations, _ = env.reset()
    space: Any = env.single_action_space
    for _ in range(steps):
        actions = generator.integers(0, space.n, num_envs)
        following, rewards, terminated, truncated, infos = env.step(actions)
        replay.add(
            observations, actions, rewards, following, terminated, truncated, final_observation=infos.get("final_obs")
        )
        observations = following
    return replay


def transitions(replay: Replay) -> list[tuple[bytes, ...]]:
    """Return every live transition as bytes, sorted."""
    store = replay._store
    batch = replay.read(np.arange(store.oldest, store.total))
    columns = (batch.observation, batch.action, batch.reward, batch.next_observation, batch.terminated)
    return sorted(tuple(np.asarray(column[row]).tobytes() for column in columns) for row in range(len(batch)))


@pytest.mark.parametrize(
    ("task", "options"),
    [("nchain-5", {}), ("minigrid/lavacrossing-easy", {"max_steps": 20}), ("sokoban/5x5-1", {"max_steps": 15})],
)
def test_there_and_back(task: str, options: dict[str, Any]) -> None:
    replay = filled(task, 120, **options)
    dataset = replay.to_minari("backsweep/there-v0", description="random play")
    assert dataset.total_steps == len(replay)
    again = Replay.from_minari(dataset)
    assert len(again) == len(replay)
    assert transitions(again) == transitions(replay)
    # By id as well, and with a sampler that needs the graph.
    by_id = Replay.from_minari("backsweep/there-v0", sampler=Topological(), seed=3)
    assert by_id.graph.num_vertices == replay.graph.num_vertices
    assert len(by_id.sample(16)) == 16


def test_episodes_keep_their_ends() -> None:
    replay = filled("minigrid/lavacrossing-easy", 90, num_envs=3, max_steps=20)
    dataset = replay.to_minari("backsweep/ends-v0")
    store = replay._store
    assert dataset.total_episodes == store.statistics()["episodes"]
    ends = [(bool(one.terminations[-1]), bool(one.truncations[-1])) for one in dataset.iterate_episodes()]
    assert all(terminated or truncated for terminated, truncated in ends)
    assert any(terminated for terminated, _ in ends)
    for episode in dataset.iterate_episodes():
        assert not episode.terminations[:-1].any()
        assert not episode.truncations[:-1].any()
        assert len(episode.observations) == len(episode.rewards) + 1
    assert Replay.from_minari(dataset).stats()["episodes"] == dataset.total_episodes


def test_an_overwritten_replay_gives_what_is_left() -> None:
    replay = filled("minigrid/lavacrossing-easy", 90, num_envs=2, capacity=64, max_steps=20)
    dataset = replay.to_minari("backsweep/left-v0")
    assert dataset.total_steps == 64
    assert transitions(Replay.from_minari(dataset)) == transitions(replay)


def test_a_data_set_that_others_recorded() -> None:
    """Recorded from a single environment with Minari's own buffers, the last episode cut in the middle."""
    from minari.data_collector import EpisodeBuffer

    env = gymnasium.make("backsweep/NChain-20-v0", length=4, max_steps=12)
    generator = np.random.default_rng(0)
    buffers = []
    for number in range(6):
        observations = [env.reset(seed=number)[0]]
        actions, rewards, terminations, truncations = [], [], [], []
        while not (terminations and (terminations[-1] or truncations[-1])) and (number < 5 or len(actions) < 2):
            actions.append(int(generator.integers(2)))
            observation, reward, terminated, truncated, _ = env.step(actions[-1])
            observations.append(observation)
            rewards.append(float(reward))
            terminations.append(terminated)
            truncations.append(truncated)
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=np.array(observations),
                actions=np.array(actions),
                rewards=rewards,
                terminations=terminations,
                truncations=truncations,
            )
        )
    steps = sum(len(buffer) for buffer in buffers)
    dataset = minari.create_dataset_from_buffers("nchain/recorded-v0", buffers, env=env)
    replay = Replay.from_minari(dataset)
    assert len(replay) == dataset.total_steps == steps
    assert replay.stats()["episodes"] == 6
    assert int(replay.read(np.arange(steps)).terminated.sum()) == sum(buffer.terminations[-1] for buffer in buffers)


def test_dictionaries_and_tuples() -> None:
    space = gymnasium.spaces.Dict(
        {
            "image": gymnasium.spaces.Box(0, 255, (2, 2), np.uint8),
            "pair": gymnasium.spaces.Tuple(
                (gymnasium.spaces.Discrete(9), gymnasium.spaces.Box(-1, 1, (3,), np.float32))
            ),
        }
    )
    replay = Replay(space, gymnasium.spaces.Box(-1, 1, (2,), np.float32), capacity=50)
    space.seed(0)
    replay.action_space.seed(0)
    here = space.sample()
    for step in range(30):
        there = space.sample()
        replay.add(here, replay.action_space.sample(), step / 3, there, step % 10 == 9, False)
        here = space.sample() if step % 10 == 9 else there
    again = Replay.from_minari(replay.to_minari("backsweep/trees-v0"))
    one, other = replay.read(np.arange(30)), again.read(np.arange(30))
    np.testing.assert_array_equal(one.observation["image"], other.observation["image"])
    np.testing.assert_array_equal(one.next_observation["pair"][1], other.next_observation["pair"][1])
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.reward, other.reward)


def test_a_data_set_goes_into_a_replay_that_then_goes_on_online() -> None:
    dataset = filled("nchain-5", 60).to_minari("backsweep/before-v0")
    space = gymnasium.spaces.Discrete(dataset.observation_space.n)
    replay = Replay(space, dataset.action_space, 1_000, num_envs=2, autoreset="next_step", check_autoreset="refuse")
    stopped = np.array([True, False])
    replay.add([0, 0], [0, 0], [0.0, 0.0], [1, 2], stopped, [False, False])
    rows = replay.add_minari(dataset)
    assert rows.tolist() == list(range(2, 2 + dataset.total_steps))
    lanes = {tuple(replay.episode(row)) for row in rows}
    assert len(lanes) == dataset.total_episodes
    # Lane 0 was to be reset by the next call, and still is; lane 1 goes on with a new episode.
    numbers = replay.add([1, 2], [0, 0], [0.0, 1.0], [0, 3], [False, False], [False, False])
    assert numbers.tolist() == [-1, rows[-1] + 1]
    assert replay.add([0, 3], [1, 1], [0.0, 1.0], [1, 4], [False, False], [False, False]).tolist() == [
        rows[-1] + 2,
        rows[-1] + 3,
    ]


def test_a_small_replay_keeps_the_last_of_a_data_set() -> None:
    dataset = filled("nchain-5", 60).to_minari("backsweep/large-v0")
    replay = Replay.from_minari(dataset, capacity=30, num_envs=3)
    assert (len(replay), replay.total) == (30, dataset.total_steps)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Replay(gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2), capacity=4)
    with pytest.raises(ValueError, match="at least one transition"):
        empty.to_minari("backsweep/empty-v0")
    with pytest.raises(TypeError, match="dataset must be a Minari data set"):
        Replay.from_minari(3)
    dataset = filled("nchain-3", 20).to_minari("backsweep/small-v0")
    other = Replay(gymnasium.spaces.Box(0, 1, (3,)), gymnasium.spaces.Discrete(2), capacity=4)
    with pytest.raises(ValueError, match="dataset must have the replay's observation_space"):
        other.add_minari(dataset)
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r"backsweep\[minari\]"):
        Replay.from_minari("backsweep/small-v0")
