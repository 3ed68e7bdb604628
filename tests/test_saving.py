"""Saving and loading: everything that the next rows depend on comes back, and nothing damaged does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

from backsweep import (
    EpisodicBackward,
    ExactBytes,
    Mixture,
    Prioritized,
    PseudoTerminals,
    Quantized,
    Replay,
    Topological,
    Uniform,
)
from backsweep.samplers import Experience, LiveSampler, Sampler
from backsweep.snapshot import SnapshotError, layout
from backsweep.types import Picks
from drive import drive
from states import assert_same_batch, assert_same_state, state_of
from strategies import Plan, examples, long_stream, plans
from twins.replay import BadEncoder, Twin
from worlds import ACTIONS, WORLDS, stacked

SAMPLERS: dict[str, Sampler] = {
    "uniform": Uniform(),
    "prioritized": Prioritized(beta_rows=5000),
    "prioritized by batch": Prioritized(normalise="batch", stratified=True, clip=2.0),
    "episodic backward": EpisodicBackward(timeouts=False),
    "topological": Topological(),
    "separate trees by visits": Topological(trees="separate", draw="visits", predecessors=1),
    "pseudo-terminals": Topological(start=PseudoTerminals(kappa=2.0), predecessors=None, roots=3),
    "no stitching, shuffled": Topological(stitch=False, shuffle=100),
    "mixture": Mixture([(0.4, Topological(shuffle=50)), (0.35, Prioritized()), (0.25, EpisodicBackward())]),
}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk() -> Any:
    """What is under test here is the contents; that they reach the disk in order is tested with the snapshots."""
    with mock.patch("os.fsync"):
        yield


@settings(max_examples=examples(40))
@given(plan=plans(with_saves=True))
def test_saving_at_any_moment_changes_nothing(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> None:
    drive(plan, folder=tmp_path_factory.mktemp("replay"), check_every=5)


def add_to(replay: Replay, steps: list[Any], world: str = "discrete") -> None:
    observe = WORLDS[world].observe
    full = [step for step in steps if step is not None]
    mask = np.array([step is not None for step in steps])
    if not full:
        return
    lanes = [full[0] if step is None else step for step in steps]
    replay.add(
        stacked([observe(step.observation) for step in lanes]),
        stacked([step.action % 7 for step in lanes]),
        np.array([step.reward for step in lanes]),
        stacked([observe(step.next_observation) for step in lanes]),
        np.array([step.terminated for step in lanes]),
        np.array([step.truncated for step in lanes]),
        mask=mask,
    )


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("world", ["uint8", "4 frames"])
def test_the_next_thousand_batches_are_those_of_a_replay_that_was_never_saved(
    name: str, world: str, tmp_path: Path
) -> None:
    replay = Replay(
        WORLDS[world].space,
        ACTIONS["discrete"].space,
        300,
        SAMPLERS[name],
        num_envs=2,
        n_step=3,
        frame_stack=WORLDS[world].frame_stack,
        seed=5,
    )
    stream = list(long_stream(11, 1500, 2, states=100, terminals=10))
    for steps in stream[:500]:  # in the middle of a sweep, an episode, a window, a cycle of the mixture's remainders
        add_to(replay, steps, world)
        batch = replay.sample(7)
        replay.update_priorities(batch.row, batch.reward - 1)
    replay.save(tmp_path)
    other = Replay.load(tmp_path)
    assert other.sampler == SAMPLERS[name]
    assert_same_state(state_of(other), state_of(replay))
    for steps in stream[500:]:
        for each in (replay, other):
            add_to(each, steps, world)
        batches = [each.sample(13) for each in (replay, other)]
        assert_same_batch(*batches)
        for each, batch in zip((replay, other), batches, strict=True):
            each.update_priorities(batch.row, batch.reward + 1)
    assert_same_state(state_of(other), state_of(replay))
    assert other.stats() == replay.stats()


@pytest.mark.parametrize("world", WORLDS)
def test_every_space_comes_back(world: str, tmp_path: Path) -> None:
    for action in ACTIONS:
        twin = Twin(sampler=Topological(), capacity=9, world=WORLDS[world], actions=ACTIONS[action], n_step=2)
        for steps in long_stream(2, 15, 1, states=8):
            twin.add(steps)
        twin.reload(tmp_path / action)
        assert twin.replay.observation_space == WORLDS[world].space
        assert twin.replay.action_space == ACTIONS[action].space
        twin.check()
        twin.sample(5)


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Box(np.array([-1, 0.1], np.float32), np.array([np.inf, 0.3], np.float32)),
        gym.spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
        gym.spaces.Box(0, 2**62, (2,), np.int64),
        gym.spaces.Dict({"z": gym.spaces.Discrete(3, start=-1), "a": gym.spaces.MultiBinary((2, 2))}),
        gym.spaces.MultiDiscrete([[2, 3], [4, 5]]),
    ],
)
def test_odd_spaces_come_back(space: gym.Space[Any], tmp_path: Path) -> None:
    replay = Replay(space, gym.spaces.Discrete(2), 5, Topological(), encoder=ExactBytes())
    space.seed(3)
    observation, following = space.sample(), space.sample()
    replay.add(observation, 1, 0.5, following, True, False)
    replay.save(tmp_path)
    other = Replay.load(tmp_path)
    assert other.observation_space == space
    assert_same_batch(other.read([0]), replay.read([0]))
    assert other.graph.vertex(observation) == replay.graph.vertex(observation)


def test_an_empty_replay_comes_back(tmp_path: Path) -> None:
    for number, sampler in enumerate(SAMPLERS.values()):
        twin = Twin(sampler=sampler, capacity=7)
        twin.reload(tmp_path / str(number))
        twin.check()
        for steps in long_stream(1, 20, 1, states=4):
            twin.add(steps)
            twin.sample(3)


def test_observations_in_a_file_are_saved_and_loaded_like_others(tmp_path: Path) -> None:
    looks = WORLDS["uint8"].observe
    replay = Replay(WORLDS["uint8"].space, ACTIONS["discrete"].space, 20, Topological(), file=tmp_path / "work")
    for t in range(50):
        replay.add(looks(t), 0, float(t), looks(t + 1), t % 10 == 9, False)
    replay.save(tmp_path / "save")
    for file in (None, tmp_path / "other"):
        loaded = Replay.load(tmp_path / "save", file=file)
        assert_same_state(state_of(loaded), state_of(replay))
        loaded.add(looks(60), 0, 0.0, looks(61), True, False)
        np.testing.assert_array_equal(loaded.read([50]).observation[0], looks(60))


def test_a_graph_that_was_asked_for_late_comes_back(tmp_path: Path) -> None:
    twin = Twin(sampler=Uniform(), capacity=20)
    for steps in long_stream(1, 50, 1, states=9):
        twin.add(steps)
    before = twin.replay.graph.num_edges
    twin.reload(tmp_path)
    assert twin.replay._graph is not None
    assert twin.replay.graph.num_edges == before


def test_a_lane_in_the_middle_of_an_autoreset_comes_back(tmp_path: Path) -> None:
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 20, num_envs=2, autoreset="next_step")
    no = np.zeros(2, np.bool_)
    replay.add([1, 2], [0, 0], [0.0, 0.0], [2, 3], np.array([True, False]), no)
    replay.save(tmp_path)
    other = Replay.load(tmp_path)
    for each in (replay, other):
        each.add([2, 3], [0, 0], [0.0, 0.0], [5, 4], no, no)  # lane 0 is being reset: no transition
        assert len(each) == 3
    assert_same_state(state_of(other), state_of(replay))


@pytest.mark.parametrize("name", SAMPLERS)
def test_clearing_before_and_after_a_save_changes_nothing(name: str, tmp_path: Path) -> None:
    stream = list(long_stream(7, 100, 1, states=20, terminals=3))
    replay = Replay(WORLDS["discrete"].space, ACTIONS["discrete"].space, 200, SAMPLERS[name], seed=3)

    def refill(each: Replay) -> None:
        each.clear()
        for steps in stream:
            add_to(each, steps)

    refill(replay)
    replay.save(tmp_path)
    other = Replay.load(tmp_path)
    for each in (replay, other):
        refill(each)
    assert_same_batch(replay.sample(50), other.sample(50))
    assert_same_state(state_of(other), state_of(replay))


def test_saves_to_two_folders_in_turn_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    twin = Twin(sampler=Topological(), capacity=300, world=WORLDS["uint8"])
    stream = long_stream(4, 2000, 1, states=100)
    for round_ in range(20):
        for _ in range(100):
            twin.add(next(stream))
        folder = tmp_path / str(round_ % 2)
        twin.replay.save(folder)
        assert_same_state(state_of(Replay.load(folder)), state_of(twin.replay))


def test_saving_goes_on_from_a_loaded_replay(tmp_path: Path) -> None:
    twin = Twin(sampler=Topological(), capacity=50, world=WORLDS["uint8"])
    for number, steps in enumerate(long_stream(4, 600, 1, states=100)):
        twin.add(steps)
        if number % 50 == 0:
            twin.reload(tmp_path)
    twin.check()


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    space = gym.spaces.Box(0, 255, (100, 100), np.uint8)
    replay = Replay(space, gym.spaces.Discrete(2), 5000)
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4001, 100, 100), np.uint8)
    for t in range(3000):
        replay.add(frames[t], 0, 0.0, frames[t + 1], False, False)
    replay.save(tmp_path)

    def names() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (tmp_path / "segments").iterdir()}

    before = names()
    assert sum(before.values()) > 29e6
    for t in range(3000, 3010):
        replay.add(frames[t], 0, 0.0, frames[t + 1], False, False)
    replay.save(tmp_path)
    written = sum(size for name, size in names().items() if name not in before)
    assert written < 12e6
    other = Replay.load(tmp_path)
    assert_same_batch(other.read(range(3010)), replay.read(range(3010)))


@pytest.mark.parametrize("frame_stack", [1, 2])
def test_every_change_reaches_the_save_where_only_changed_chunks_are_looked_at(
    frame_stack: int, tmp_path: Path
) -> None:
    """Chunks of 64 records, as small as what is marked as changed together, and few changes between saves."""
    replay = Replay(
        gym.spaces.Box(0, 1e6, (frame_stack, 2), np.float64),
        ACTIONS["discrete"].space,
        500,
        frame_stack=frame_stack,
        encoder=ExactBytes(),
    )

    def look(state: int) -> np.ndarray:
        return np.array([[state + k, 0.5] for k in range(frame_stack)])

    with mock.patch.object(layout, "CHUNK_BYTES", 64 * 16), mock.patch.object(layout, "SMALL_BYTES", 1):
        for t in range(1200):
            replay.add(look(t), 0, 0.0, look(t + 1), t % 9 == 8, False)
            if t > 480 and t % 23 == 0:
                replay.save(tmp_path)
                assert_same_state(state_of(Replay.load(tmp_path)), state_of(replay))


# -- damage -----------------------------------------------------------------------------------------------------------


def saved(folder: Path) -> Replay:
    twin = Twin(sampler=SAMPLERS["mixture"], capacity=40, world=WORLDS["uint8"])
    for steps in long_stream(1, 70, 1, states=30):
        twin.add(steps)
        twin.sample(3)
    twin.replay.save(folder)
    return twin.replay


def test_a_flipped_bit_in_any_file_is_refused_by_name(tmp_path: Path) -> None:
    saved(tmp_path)
    rng = np.random.default_rng(0)
    for path in [tmp_path / "manifest.json", *(tmp_path / "segments").iterdir()]:
        whole = path.read_bytes()
        for place in {0, len(whole) // 2, len(whole) - 1, *rng.integers(0, len(whole), 20).tolist()}:
            broken = bytearray(whole)
            broken[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(broken)
            with pytest.raises(SnapshotError) as caught:
                Replay.load(tmp_path)
            assert path.name in str(caught.value)
        path.write_bytes(whole)
    Replay.load(tmp_path)


def test_a_torn_file_in_any_place_is_refused_by_name(tmp_path: Path) -> None:
    saved(tmp_path)
    for path in [tmp_path / "manifest.json", *(tmp_path / "segments").iterdir()]:
        whole = path.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(SnapshotError) as caught:
                Replay.load(tmp_path)
            assert path.name in str(caught.value)
        path.unlink()
        with pytest.raises((SnapshotError, FileNotFoundError)) as lost:
            Replay.load(tmp_path)
        assert path.name in str(lost.value)
        path.write_bytes(whole)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    from backsweep.snapshot import write_snapshot

    write_snapshot(tmp_path / "other", {"x": np.arange(3)}, {}, kind="weights", version=1)
    with pytest.raises(SnapshotError, match=r"manifest\.json.*weights"):
        Replay.load(tmp_path / "other")
    write_snapshot(tmp_path / "later", {"x": np.arange(3)}, {}, kind="backsweep replay", version=99)
    with pytest.raises(SnapshotError, match=r"manifest\.json.*99"):
        Replay.load(tmp_path / "later")
    with pytest.raises((SnapshotError, FileNotFoundError), match="nowhere"):
        Replay.load(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("dear")
    replay = saved(tmp_path / "good")
    with pytest.raises(SnapshotError, match="letters"):
        replay.save(tmp_path / "letters")
    assert (tmp_path / "letters" / "letter.txt").read_text() == "dear"


def test_no_pickle_is_ever_written(tmp_path: Path) -> None:
    saved(tmp_path)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors", ".lock"}
    json.loads((tmp_path / "manifest.json").read_text())


# -- classes of the user's own ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Newest:
    """A sampler that backsweep does not know."""

    needs_graph = False

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveSampler:
        return LiveNewest(experience, generator)


class LiveNewest(LiveSampler):
    def pick(self, count: int) -> Picks:
        newest = self.experience.total - 1
        back = self.generator.integers(min(5, len(self.experience)), size=count)
        return Picks(newest - back)


def test_a_sampler_and_an_encoder_of_ones_own_are_given_to_load(tmp_path: Path) -> None:
    for sampler in (Newest(), Mixture([(0.5, Newest()), (0.5, Topological())])):
        folder = tmp_path / type(sampler).__name__
        replay = Replay(gym.spaces.Discrete(20), gym.spaces.Discrete(7), 10, sampler, encoder=BadEncoder(3))
        stream = list(long_stream(1, 60, 1, states=9))
        for steps in stream[:30]:
            if steps[0] is not None:
                add_to(replay, steps)
                replay.sample(3)
        replay.save(folder)
        with pytest.raises(ValueError, match=r"encoder of class 'BadEncoder'.*Replay\.load as encoder="):
            Replay.load(folder, sampler=sampler)
        with pytest.raises(ValueError, match=r"sampler of class 'Newest'.*Replay\.load as sampler="):
            Replay.load(folder, encoder=BadEncoder(3))
        other = Replay.load(folder, sampler=sampler, encoder=BadEncoder(3))
        for steps in stream[30:]:
            for each in (replay, other):
                add_to(each, steps)
            assert_same_batch(other.sample(5), replay.sample(5))


def test_another_sampler_or_encoder_than_the_saved_one_is_refused(tmp_path: Path) -> None:
    """And the save is not called unusable, since it is the argument that is wrong."""
    Replay(gym.spaces.Discrete(20), gym.spaces.Discrete(2), 10).save(tmp_path)
    with pytest.raises(ValueError, match="sampler must be the saved one, of class 'Uniform', or left out, got Prior"):
        Replay.load(tmp_path, sampler=Prioritized())
    with pytest.raises(ValueError, match=r"encoder must be the saved one, .*, got ExactBytes\(\)"):
        Replay.load(tmp_path, encoder=ExactBytes())
    Replay.load(tmp_path, sampler=Uniform())


def test_a_class_with_a_known_name_is_still_foreign(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Uniform(Newest):
        pass

    replay = Replay(gym.spaces.Discrete(20), gym.spaces.Discrete(2), 10, Uniform())
    replay.add(1, 0, 0.0, 2, False, False)
    replay.save(tmp_path)
    with pytest.raises(ValueError, match="sampler of class 'Uniform'"):
        Replay.load(tmp_path)
    assert Replay.load(tmp_path, sampler=Uniform()).sample(1).row.tolist() == [0]


def test_numpy_numbers_in_a_configuration_come_back(tmp_path: Path) -> None:
    replay = Replay(
        gym.spaces.Box(-1, 1, (2,), np.float32),
        gym.spaces.Discrete(2),
        np.int64(10),  # type: ignore[arg-type]
        Topological(roots=np.int64(3), predecessors=np.int32(2)),  # type: ignore[arg-type]
        encoder=Quantized([0.1, 0.2]),  # type: ignore[arg-type]
        gamma=1,
        seed=np.uint32(7),  # type: ignore[arg-type]
    )
    replay.save(tmp_path)
    assert Replay.load(tmp_path).sampler == Topological(roots=3, predecessors=2)
