"""Adding with one kernel call leaves a replay exactly as adding the long way does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import Replay
from backsweep.encoding import ExactBytes
from backsweep.jit.compilation import interpreted
from backsweep.samplers import Mixture, Prioritized, Sampler, Topological, Uniform

SPACES: dict[str, gym.Space[Any]] = {
    "image": gym.spaces.Box(0, 255, (5, 3), np.uint8),  # 15 bytes: not a whole number of words
    "number": gym.spaces.Discrete(30),
    "floats": gym.spaces.Box(-50, 50, (3,), np.float32),  # 12 bytes
    "doubles": gym.spaces.Box(-50, 50, (2, 2), np.float64),
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
    assert np.array_equal(first.sample(16).row, second.sample(16).row)


def the_long_way(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> Replay:
    with monkeypatch.context() as patch:
        patch.setattr("backsweep.replay.parts.tables_for", lambda *parts: None)
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
