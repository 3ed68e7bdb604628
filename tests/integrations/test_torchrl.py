"""The sampler inside the real TorchRL."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchrl", reason="needs torchrl: make test-integrations installs it")

import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, ListStorage, ReplayBuffer, TensorDictReplayBuffer

from backsweep import Mixture, Prioritized, Topological
from backsweep.integrations.torchrl import BacksweepSampler

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])


def steps(first: int, count: int, trajectory: int | None, length: int = 5) -> TensorDict:
    """Steps of a corridor of `length` places, from its `first` step on."""
    time = torch.arange(first, first + count)
    place = (time % length).float()[:, None] + (0 if trajectory is None else 100 * trajectory)
    terminated = (time % length == length - 1)[:, None]
    data: dict[str, Any] = {
        "observation": place,
        "action": torch.zeros(count, 1),
        "next": {
            "observation": place + 1,
            "reward": torch.ones(count, 1),
            "terminated": terminated,
            "truncated": torch.zeros_like(terminated),
            "done": terminated,
        },
    }
    if trajectory is not None:
        data["collector"] = {"traj_ids": torch.full((count,), 1000 * trajectory) + time // length}
    return TensorDict(data, batch_size=[count])


def buffer_with(sampler: Any, capacity: int = 100, **options: Any) -> tuple[TensorDictReplayBuffer, BacksweepSampler]:
    ours = BacksweepSampler(capacity, sampler, seed=0, **options)
    return TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), sampler=ours, batch_size=16), ours


def test_samples_have_weights_and_priorities_come_back() -> None:
    buffer, ours = buffer_with(Prioritized(alpha=1.0))
    buffer.extend(steps(0, 40, None))
    batch = buffer.sample()
    assert batch["priority_weight"].shape == (16,)
    batch["td_error"] = torch.where(batch["index"] == batch["index"][0], 500.0, 1e-3)
    buffer.update_tensordict_priority(batch)
    assert (buffer.sample()["index"] == batch["index"][0]).sum() > 4
    assert ours.picker.replay.stats()["largest_priority"] > 400
    assert buffer.sample()["priority_weight"].min() < 1


def test_new_rows_have_the_largest_priority_so_far() -> None:
    buffer, ours = buffer_with(Prioritized(alpha=1.0))
    buffer.extend(steps(0, 10, None))
    batch = buffer.sample()
    batch["td_error"] = torch.full((16,), 50.0)
    buffer.update_tensordict_priority(batch)
    buffer.add(steps(10, 1, None)[0])
    buffer.sample()
    assert ours.picker.replay.machinery.sampler.priorities(np.array([10]))[0] == pytest.approx(50, rel=1e-3)  # type: ignore[attr-defined]


def test_environments_side_by_side_keep_their_episodes_apart() -> None:
    """A collector's batches hold a few steps of every environment, one environment after another."""
    buffer, ours = buffer_with(Topological(), lanes=4)
    for batch in range(4):
        buffer.extend(torch.cat([steps(3 * batch, 3, trajectory) for trajectory in range(3)]))
    buffer.sample()
    stats = ours.picker.replay.stats()
    assert stats["episodes_broken_off"] == 0
    assert stats["terminal_vertices"] == 3
    assert stats["episodes"] == 3 * 3  # 12 steps each: two whole episodes and a part of a third


def test_around_the_ring_and_one_by_one() -> None:
    buffer, ours = buffer_with(BOTH, capacity=20)
    for step in range(70):
        buffer.add(steps(step, 1, None)[0])
        if step > 10:
            places = buffer.sample()["index"]
            assert places.max() < min(step + 1, 20)
    assert len(ours.picker) == 20
    buffer.extend(steps(70, 50, None)[:45])  # twice around before anything is read
    batch = buffer.sample()
    np.testing.assert_array_equal(batch["next", "observation"].numpy(), batch["observation"].numpy() + 1)
    buffer.empty()
    with pytest.raises((RuntimeError, IndexError)):
        buffer.sample()


def test_a_storage_that_was_filled_before() -> None:
    first, _ = buffer_with(None)
    first.extend(steps(0, 30, None))
    ours = BacksweepSampler(100, Topological(), seed=0)
    second = TensorDictReplayBuffer(storage=first.storage, sampler=ours, batch_size=16)
    assert second.sample()["index"].max() < 30
    assert len(ours.picker) == 30


def test_states_go_on_as_the_original_does(tmp_path: Path) -> None:
    buffer, ours = buffer_with(BOTH)
    buffer.extend(steps(0, 60, 1))
    buffer.sample()
    state = copy.deepcopy(buffer.state_dict())
    buffer.dumps(tmp_path / "buffer")
    expected = buffer.sample()["index"].tolist()
    again, _ = buffer_with(BOTH)
    again.load_state_dict(state)
    assert again.sample()["index"].tolist() == expected
    third, other = buffer_with(BOTH)
    third.extend(steps(0, 2, None))
    third.loads(tmp_path / "buffer")
    assert third.sample()["index"].tolist() == expected
    assert len(other.picker) == len(ours.picker) == 60


def test_what_cannot_be_read_is_said() -> None:
    buffer, _ = buffer_with(None, observation="pixels")
    buffer.extend(steps(0, 5, None))
    with pytest.raises(KeyError, match=r"BacksweepSampler needs .*pixels"):
        buffer.sample()


def test_rows_that_were_never_read_and_running_trajectories_are_saved(tmp_path: Path) -> None:
    buffer, _ = buffer_with(Topological(), lanes=4)
    buffer.extend(torch.cat([steps(0, 3, trajectory) for trajectory in range(3)]))
    buffer.sample()
    buffer.extend(torch.cat([steps(3, 3, trajectory) for trajectory in range(3)]))
    buffer.dumps(tmp_path / "buffer")
    again, ours = buffer_with(Topological(), lanes=4)
    again.loads(tmp_path / "buffer")
    assert again.sample()["index"].tolist() == buffer.sample()["index"].tolist()
    stats = ours.picker.replay.stats()
    assert (len(ours.picker), stats["episodes_broken_off"], stats["terminal_vertices"]) == (18, 0, 3)


def test_a_save_with_damaged_lanes_leaves_the_sampler_as_it_was(tmp_path: Path) -> None:
    buffer, _ = buffer_with(None, lanes=4)
    buffer.extend(torch.cat([steps(0, 3, trajectory) for trajectory in range(3)]))
    buffer.sample()
    buffer.dumps(tmp_path / "buffer")
    fewer, ours = buffer_with(None, lanes=2)
    fewer.extend(steps(0, 2, None))
    fewer.sample()
    with pytest.raises(ValueError, match="lanes"):
        ours.loads(tmp_path / "buffer" / "sampler")
    assert len(ours.picker) == 2
    assert len(ours._lanes.of) == 1


def test_what_a_writer_dropped_is_not_read() -> None:
    buffer, ours = buffer_with(None)
    buffer.extend(steps(0, 5, None))
    ours.extend(torch.tensor([-1, -1]))
    ours.add(None)
    buffer.sample()
    assert len(ours.picker) == 5


def test_a_list_of_steps_is_a_storage_too() -> None:
    ours = BacksweepSampler(100, Topological(), seed=0)
    buffer = ReplayBuffer(storage=ListStorage(100), sampler=ours, batch_size=16, collate_fn=torch.stack)
    buffer.extend(list(steps(0, 30, None)))
    batch = buffer.sample()
    np.testing.assert_array_equal(batch["next", "observation"].numpy(), batch["observation"].numpy() + 1)
    assert len(ours.picker) == 30


def test_nested_observations_and_several() -> None:
    def nested(first: int) -> TensorDict:
        data = steps(first, 20, None)
        data["agent", "place"] = data["observation"]
        data["next", "agent", "place"] = data["next", "observation"]
        return data.exclude("observation", ("next", "observation"))

    for keys in (("agent", "place"), [("agent", "place"), "action"]):
        buffer, ours = buffer_with(Topological(), observation=keys)
        data = nested(0)
        data["next", "action"] = data["action"]
        buffer.extend(data)
        buffer.sample()
        assert len(ours.picker) == 20
    buffer, _ = buffer_with(None, observation=("agent", "positions"))
    buffer.extend(nested(0))
    with pytest.raises(KeyError, match=r"needs .*agent.*positions.* in the storage"):
        buffer.sample()


def test_mistakes_that_would_stay_unnoticed() -> None:
    small = BacksweepSampler(10, seed=0)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100), sampler=small, batch_size=4)
    buffer.extend(steps(0, 30, None))
    with pytest.raises(ValueError, match="max_capacity must be the storage's size, at least 30, got 10"):
        buffer.sample()
    large = BacksweepSampler(1_000, seed=0)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100), sampler=large, batch_size=4)
    buffer.extend(steps(0, 30, None))
    with pytest.raises(ValueError, match="max_capacity must be the storage's size, 100, got 1000"):
        buffer.sample()
    buffer, _ = buffer_with(Prioritized())
    buffer.extend(steps(0, 30, None))
    batch = buffer.sample()
    batch["td_error"] = torch.full((16,), float("nan"))
    with pytest.raises(ValueError, match="td_error"):
        buffer.update_tensordict_priority(batch)
