"""Steps that are collected in chunks make the replay that `Replay.add` makes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep import Mixture, Prioritized, Replay, Topological
from backsweep.replay.chunks import Chunk, ChunkBuilder, add_chunk, chunk_from_arrays
from backsweep.snapshot.contents import ContentsError
from states import assert_same_state, state_of
from worlds import WORLDS

BOTH = Mixture([(0.5, Topological(roots=2)), (0.5, Prioritized())])
ACTIONS = gym.spaces.Discrete(3)


def stacked(world: Any, states: list[int]) -> Any:
    """Return the observations of some states with a leading axis."""
    seen = [world.observe(state) for state in states]
    if isinstance(seen[0], dict):
        return {name: np.stack([each[name] for each in seen]) for name in seen[0]}
    if isinstance(seen[0], tuple):
        return tuple(np.stack([each[part] for each in seen]) for part in range(len(seen[0])))
    return np.stack(seen)


class Walk:
    """Environments that go from one numbered state to another; the caller resets, or the next call does."""

    def __init__(self, world: Any, num_envs: int, mode: str, seed: int) -> None:
        self.world, self.num_envs, self.mode = world, num_envs, mode
        self.generator = np.random.default_rng(seed)
        self.states = self.generator.integers(0, 40, num_envs)
        self.ended = np.zeros(num_envs, np.bool_)

    def step(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what `add` takes."""
        n, draw = self.num_envs, self.generator
        now, following = self.states.copy(), draw.integers(0, 40, n)
        terminated, truncated = draw.random(n) < 0.2, draw.random(n) < 0.1
        more: dict[str, Any] = {}
        if self.mode == "next_step":
            terminated &= ~self.ended
            truncated &= ~self.ended
        self.ended = terminated | truncated
        shown = following.copy()
        if self.mode == "same_step":
            shown = np.where(self.ended, draw.integers(0, 40, n), following)
            finals = [
                self.world.observe(int(state)) if end else None
                for state, end in zip(following, self.ended, strict=True)
            ]
            more["final_observation"] = finals
        self.states = np.where(self.ended, draw.integers(0, 40, n), following) if self.mode == "disabled" else shown
        if self.mode == "unknown":
            more["successor_unknown"] = self.ended
        step = (
            stacked(self.world, now.tolist()),
            draw.integers(0, 3, n),
            draw.normal(size=n),
            stacked(self.world, shown.tolist()),
            terminated,
            truncated,
        )
        return step, more


@given(
    world=st.sampled_from(sorted(WORLDS)),
    mode=st.sampled_from(["disabled", "next_step", "same_step", "hidden", "unknown"]),
    num_envs=st.integers(2, 4),
    chunk=st.integers(1, 7),
    steps=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_chunks_make_the_same_replay(world: str, mode: str, num_envs: int, chunk: int, steps: int, seed: int) -> None:
    chosen = WORLDS[world]
    autoreset: Any = None if mode == "unknown" else mode
    options: dict[str, Any] = {"num_envs": num_envs, "frame_stack": chosen.frame_stack, "check_autoreset": "off"}
    direct = Replay(chosen.space, ACTIONS, 50, BOTH, autoreset=autoreset, seed=seed, **options)
    other = Replay(chosen.space, ACTIONS, 50, BOTH, seed=seed, **options)
    builder = ChunkBuilder(chosen.space, ACTIONS, autoreset=autoreset, steps=chunk, **options)
    lanes = np.arange(num_envs)
    walk = Walk(chosen, num_envs, mode, seed)

    def send() -> None:
        made = builder.take()
        if made is not None:
            again = chunk_from_arrays(made.arrays(), other)
            assert add_chunk(other, again, lanes) == made.rows

    for _ in range(steps):
        step, more = walk.step()
        direct.add(*step, **more)
        builder.add(*step, **more)
        if builder.full:
            send()
    send()
    assert len(builder) == 0
    assert builder.take() is None
    assert builder.truncations_left_out == direct.stats()["truncations_left_out"]
    assert other.total == direct.total
    for replay in (direct, other):  # what chunks do not bring along
        replay._autoreset.ended[:] = False
        replay._left_out = 0
    if direct.total:
        rows = np.arange(direct.oldest, direct.total)
        for name in ("row", "terminated", "reward", "action"):
            assert np.array_equal(getattr(direct.read(rows), name), getattr(other.read(rows), name))
        assert np.array_equal(direct.sample(20).row, other.sample(20).row)
    same = {key: value for key, value in state_of(direct).items() if key != "autoreset"}
    assert_same_state({key: value for key, value in state_of(other).items() if key != "autoreset"}, same)


def test_each_observation_is_sent_once() -> None:
    builder = ChunkBuilder(gym.spaces.Box(-9, 99, (50,), np.float64), ACTIONS, steps=20)
    for time in range(20):
        builder.add(np.full(50, time / 1), 0, 0.0, np.full(50, time + 1.0), False, False)
    chunk = builder.take()
    assert chunk is not None
    assert (len(chunk.words), len(chunk.successors), chunk.rows) == (20, 1, 20)
    assert chunk.nbytes < 23 * 50 * 8


def test_mistakes_are_refused_at_once() -> None:
    builder = ChunkBuilder(gym.spaces.Box(-9, 9, (2,), np.float32), ACTIONS, 2, autoreset="same_step", steps=2)
    good = (
        np.zeros((2, 2), np.float32),
        [0, 1],
        [0.0, 0.0],
        np.zeros((2, 2), np.float32),
        [False, False],
        [False, False],
    )
    with pytest.raises(ValueError, match="observation must be finite"):
        builder.add(np.full((2, 2), np.nan, np.float32), *good[1:])
    with pytest.raises(ValueError, match=r"final_observation must be given where a lane has ended \(lane 1\)"):
        builder.add(*good[:4], [False, True], [False, False])
    assert len(builder) == 0
    builder.add(*good)
    builder.add(*good)
    with pytest.raises(ValueError, match="2 steps are waiting"):
        builder.add(*good)


def test_a_stream_of_another_kind_is_noticed() -> None:
    builder = ChunkBuilder(gym.spaces.Discrete(100), ACTIONS, 2, check_autoreset="refuse", steps=100)
    ended = np.array([True, True])

    def play() -> None:
        for time in range(20):  # as if the environment reset in the call after the end
            now = np.array([time, time + 50])
            builder.add(now, [0, 0], [0.0, 0.0], now + 1, ended, ~ended)

    with pytest.raises(ValueError, match=r"Replay\.for_envs"):
        play()


def good_chunk(replay: Replay) -> dict[str, Any]:
    builder = ChunkBuilder(replay.observation_space, replay.action_space, 2, steps=3)
    for time in range(3):
        now, following = np.array([time, time]), np.array([time + 1, time + 1])
        builder.add(
            now, [0, 2], [0.5, 1.0], following, [False, time == 1], [False, False], successor_unknown=[False, time == 1]
        )
    chunk = builder.take()
    assert chunk is not None
    return chunk.arrays()


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("words", lambda a: a + np.uint64(1000), "unseen state is not"),
        ("words", lambda a: np.where(np.arange(3)[:, None, None] == 2, np.uint64(99), a), "observations do not fit"),
        ("words", lambda a: a[:, :1], "words is"),
        ("actions", lambda a: a + np.uint8(3), "actions do not fit"),
        ("rewards", lambda a: a * np.nan, "NaN"),
        ("rewards", lambda a: a * 1e300, "too large"),
        ("rewards", lambda a: a.astype(np.float32), "rewards is"),
        ("flags", lambda a: a | np.uint8(64), "bits that mean nothing"),
        ("flags", lambda a: a & np.uint8(254), "terminations alone"),
        ("apart", lambda a: a + 3, "its places go"),
        ("apart", lambda a: a[::-1].copy(), "do not rise"),
        ("apart", lambda a: a - a[0], "no successors"),
        ("successors", lambda a: a ^ np.uint64(1 << 40), "unseen state is not"),
    ],
)
def test_a_crafted_chunk_is_refused(name: str, change: Any, why: str) -> None:
    replay = Replay(gym.spaces.Discrete(50), ACTIONS, 20, num_envs=2)
    arrays = good_chunk(replay)
    chunk_from_arrays(arrays, replay)
    with pytest.raises(ContentsError, match=why):
        chunk_from_arrays({**arrays, name: change(arrays[name])}, replay)
    with pytest.raises(ContentsError, match="a chunk has the arrays"):
        chunk_from_arrays({key: value for key, value in arrays.items() if key != name}, replay)
    assert set(arrays) == set(Chunk.__dataclass_fields__)
