"""Adding with one kernel call leaves a replay exactly as adding the long way does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep import Replay
from backsweep.encoding import ExactBytes
from backsweep.jit.compilation import interpreted
from backsweep.samplers import Mixture, Prioritized, Sampler, Topological, Uniform
from backsweep.store.distinct_kernels import are_streamed, copy_and_hash, hash_record
from backsweep.store.ring_kernels import CONTINUES, FRAMES

SPACES: dict[str, gym.Space[Any]] = {
    "image": gym.spaces.Box(0, 255, (5, 3), np.uint8),  # 15 bytes: not a whole number of words
    "number": gym.spaces.Discrete(30),
    "floats": gym.spaces.Box(-50, 50, (3,), np.float32),  # 12 bytes
    "doubles": gym.spaces.Box(-50, 50, (2, 2), np.float64),
    "words": gym.spaces.Box(0, 255, (4, 4), np.uint8),
    "stack": gym.spaces.Box(0, 255, (2, 8), np.uint8),
}
SAMPLERS: dict[str, Sampler] = {
    "uniform": Uniform(),
    "topological": Topological(roots=2, predecessors=2),
    "mixture": Mixture([(0.5, Topological()), (0.5, Prioritized())]),
}


def feed(replay: Replay, steps: int, seed: int) -> list[list[int]]:
    """Add a walk with ends of both kinds and return the row numbers; priorities move in between."""
    numbers = []
    generator = np.random.default_rng(seed)
    space, lanes = replay.observation_space, replay.num_envs
    known = generator.integers(0, 30, (12, *(space.shape or ()))).astype(space.dtype)
    if known.dtype.kind == "f":
        known /= 7  # fractions, as observations have
    if replay._store.frame_stack > 1:
        known[:, 1] = known[::-1, 0]
    now = known[generator.integers(0, 12, lanes)]
    for step in range(steps):
        following = known[generator.integers(0, 12, lanes)]
        action, reward = generator.integers(0, 3, lanes), generator.normal(size=lanes)
        terminated, truncated = generator.random(lanes) < 0.1, generator.random(lanes) < 0.05
        arguments = (now, action, reward, following, terminated, truncated)
        numbers.append(replay.add(*(arguments if lanes > 1 else (each[0] for each in arguments))).tolist())
        now = np.where((terminated | truncated).reshape(-1, *[1] * (now.ndim - 1)), known[:lanes], following)
        if step % 7 == 6:
            batch = replay.sample(8)
            replay.update_priorities(batch.row, np.sin(batch.row + 1.0))
    return numbers


def contents(replay: Replay) -> list[Any]:
    machine = replay.machinery
    arrays = {**machine.store.arrays(), **machine.sampler.state().arrays}
    if machine.graph is not None:
        arrays.update(machine.graph.arrays())
    return [array.copy() for _, array in sorted(arrays.items())]


def check_same(first: Replay, second: Replay) -> None:
    assert first.stats() == second.stats()
    for mine, other in zip(contents(first), contents(second), strict=True):
        assert np.array_equal(mine, other)
    size = min(16, first.capacity)
    assert np.array_equal(first.sample(size).row, second.sample(size).row)


def the_long_way(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> Replay:
    with monkeypatch.context() as patch:
        patch.setattr("backsweep.replay.components.tables_for", lambda *parts: None)
        return Replay(*arguments, **options)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("space", SPACES)
def test_one_call_is_as_the_long_way(space: str, sampler: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (SPACES[space], gym.spaces.Discrete(3), 90, SAMPLERS[sampler])
    options: dict[str, Any] = {"num_envs": lanes, "seed": 3, "frame_stack": 2 if space == "stack" else 1}
    quick, slow = Replay(*arguments, **options), the_long_way(monkeypatch, *arguments, **options)
    assert (quick._tables is not None) == (not interpreted())
    assert slow._tables is None
    rows = [feed(replay, 150, 1) for replay in (quick, slow)]
    assert rows[0] == rows[1] == [list(range(lanes * step, lanes * (step + 1))) for step in range(150)]
    check_same(quick, slow)


@pytest.mark.parametrize("capacity", [4, 5, 7, 8, 9, 13])
@pytest.mark.parametrize("space", ["words", "doubles", "image"])
def test_a_ring_that_has_just_overwritten_what_a_lane_continues_from(
    space: str, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An observation that is its lane's last successor is not copied, unless that is gone; some steps are left out."""
    arguments = (SPACES[space], gym.spaces.Discrete(3), capacity, Topological(roots=2))
    options: dict[str, Any] = {"num_envs": 4, "check_autoreset": "off"}
    quick, slow = Replay(*arguments, **options), the_long_way(monkeypatch, *arguments, **options)
    generator = np.random.default_rng(capacity)
    known = generator.integers(0, 9, (6, *(SPACES[space].shape or ()))).astype(SPACES[space].dtype)
    now, left_uncopied = known[:4], 0
    for step in range(200):
        following, ends = known[generator.integers(0, 6, 4)], generator.random((2, 4)) < 0.05
        apart = np.zeros((8, *known.shape[1:]), known.dtype)[::2]  # lanes need not lie next to each other
        apart[:] = now if step % 5 else known[generator.integers(0, 6, 4)]
        step_given = (apart, np.zeros(4, np.int64), np.zeros(4), following, *ends)
        assert quick.add(*step_given).tolist() == slow.add(*step_given).tolist()
        left_uncopied += int((quick._store.staging.flags & CONTINUES != 0).sum())
        now = following
    check_same(quick, slow)
    assert (left_uncopied > 0) == (space != "image" and capacity > 4 and not interpreted())


@pytest.mark.parametrize("sampler", ["uniform", "topological"])
def test_large_observations_that_are_written_past_the_caches(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space = gym.spaces.Box(0, 255, (129, 8), np.uint8)  # lines of the cache and observations do not coincide
    arguments, options = (space, gym.spaces.Discrete(3), 33_000, SAMPLERS[sampler]), {"num_envs": 4, "seed": 3}
    quick, slow = Replay(*arguments, **options), the_long_way(monkeypatch, *arguments, **options)
    assert are_streamed(quick._store.bundles[FRAMES])
    for seed in (1, 2):  # the second walk's observations are new
        assert feed(quick, 40, seed) == feed(slow, 40, seed)
    check_same(quick, slow)


@pytest.mark.parametrize("space", ["words", "doubles"])
def test_what_is_kept_of_the_last_call_does_not_outlive_other_calls(
    space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observations are compared with successors that a kernel has kept; other ways to add know nothing of them."""
    arguments = (SPACES[space], gym.spaces.Discrete(3), 60, Topological(roots=2))
    options: dict[str, Any] = {"num_envs": 4, "check_autoreset": "off"}
    quick, slow = Replay(*arguments, **options), the_long_way(monkeypatch, *arguments, **options)
    generator = np.random.default_rng(5)
    known = generator.integers(0, 9, (3, *(SPACES[space].shape or ()))).astype(SPACES[space].dtype)
    zeros, never = np.zeros(4, np.int64), np.zeros(4, np.bool_)
    for _ in range(300):
        now, following = known[generator.integers(0, 3, (2, 4))]
        way, some = generator.integers(0, 6), generator.random(4) < 0.5
        for replay in (quick, slow):
            if way == 0:
                replay.add(now, zeros, zeros, following, never, never, mask=some)
            elif way == 1:
                replay.extend(now, zeros[:3], zeros[:3], lane=2)
            elif way == 2 and space == "doubles":
                wrong = following.copy()
                wrong[3] = np.nan
                with pytest.raises(ValueError, match="next_observation"):
                    replay.add(now, zeros, zeros, wrong, never, never)
            else:
                replay.add(now, zeros, zeros, following, never, never)
    check_same(quick, slow)


def test_a_graph_that_is_asked_for_late_and_a_loaded_replay_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (SPACES["image"], gym.spaces.Discrete(3), 90)
    quick, slow = Replay(*arguments), the_long_way(monkeypatch, *arguments)
    monkeypatch.setattr(slow, "_use_arrays", lambda: None)
    for replay in (quick, slow):
        feed(replay, 40, 2)
        assert replay.graph.num_vertices > 0
        feed(replay, 120, 3)
    assert slow._tables is None
    check_same(quick, slow)
    quick.save(tmp_path / "replay")
    loaded = Replay.load(tmp_path / "replay")
    for replay in (quick, loaded):
        feed(replay, 100, 4)
    check_same(quick, loaded)


def test_other_encoders_take_the_long_way() -> None:
    topological = Topological()
    assert Replay(SPACES["image"], gym.spaces.Discrete(3), 90, topological, encoder=ExactBytes())._tables is None
    integers = gym.spaces.Box(-9, 9, (3,), np.int32)
    assert Replay(integers, gym.spaces.Discrete(3), 90, topological)._tables is None
    assert (Replay(integers, gym.spaces.Discrete(3), 90)._tables is not None) == (not interpreted())


@pytest.mark.kernels
@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(0, 99))
def test_copying_and_hashing_at_once_is_as_one_after_the_other(words: list[int], seed: int) -> None:
    record, copied = np.array(words, np.uint64), np.zeros(len(words), np.uint64)
    weights = np.random.default_rng(seed).integers(0, 2**64, len(words), np.uint64)
    with np.errstate(over="ignore"):
        assert copy_and_hash(record, copied, weights) == hash_record(record, weights)
    assert copied.tolist() == words
