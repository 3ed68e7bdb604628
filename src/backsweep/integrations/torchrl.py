"""backsweep in TorchRL: a `Sampler` for its replay buffers that uses any sampler of backsweep.

from backsweep import Prioritized
from backsweep.integrations.torchrl import BacksweepSampler

storage, sampler = LazyTensorStorage(100_000), BacksweepSampler(100_000, Prioritized())
buffer = TensorDictReplayBuffer(storage=storage, sampler=sampler, batch_size=64)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

try:
    import torchrl  # noqa: F401
except ImportError as error:
    raise ImportError("backsweep.integrations.torchrl needs TorchRL: pip install 'backsweep[torchrl]'") from error

import numpy as np
import torch
from torchrl.data.replay_buffers.samplers import PrioritizedSampler
from torchrl.data.replay_buffers.storages import TensorStorage

from backsweep.integrations import LanePool, seed_from_numpy
from backsweep.integrations.row_picker import RowPicker
from backsweep.samplers import Sampler
from backsweep.saving import NOT_OURS
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from backsweep.snapshot.contents import ContentsError, need, need_within

__all__ = ["BacksweepSampler"]

Key: TypeAlias = str | tuple[str, ...]
TRAJECTORY = ("collector", "traj_ids")
NO_ERROR = float("-inf")
"""The priority of a row that has no TD error yet; a NaN is a mistake in the loss."""
UNREAD, KIND, VERSION = "unread", "backsweep sampler of TorchRL", 1


def _index_of(places: np.ndarray[Any, Any], storage: Any) -> Any:
    """Return places as an index: places in a row as a slice, which tensors read without a copy."""
    first, last = int(places[0]), int(places[-1])
    if isinstance(storage, TensorStorage) and (np.diff(places) == 1).all():
        return slice(first, last + 1)
    return torch.from_numpy(places)


class BacksweepSampler(PrioritizedSampler):
    """Any sampler of backsweep for a replay buffer of TorchRL.

    It derives from `PrioritizedSampler` only because `update_tensordict_priority` requires that class.

    Parameters
    ----------
    max_capacity
        The storage's size.
    sampler
        By default `Uniform()`.
    observation
        The key of observations: a str, or a tuple for a nested one. A list of them if there are several.
    lanes
        Number of trajectories that may run at the same time: at least the collector's number of environments.
        Trajectories are identified by ``("collector", "traj_ids")``, which collectors write. Without it, all data is
        one stream, cut where a step does not start at the end of the step before.
    seed
        By default derived from numpy's global random state.
    """

    def __init__(
        self,
        max_capacity: int,
        sampler: Sampler | None = None,
        *,
        observation: Key | list[Key] = "observation",
        lanes: int = 64,
        seed: int | None = None,
    ) -> None:
        # The parent's __init__ would build its trees, which are not needed.
        self._max_capacity = max_capacity
        self.reduction = "max"  # how the buffer reduces several priorities to one
        keys = observation if isinstance(observation, list) else [observation]
        self._keys = [(key,) if isinstance(key, str) else tuple(key) for key in keys]
        self._lanes = LanePool(min(lanes, max_capacity))
        self._pending: list[np.ndarray[Any, Any]] = []
        seed = seed_from_numpy() if seed is None else seed
        self.picker = RowPicker(max_capacity, self._lanes.count, sampler, seed)

    def __repr__(self) -> str:
        return f"BacksweepSampler({self.picker.replay.sampler})"

    # -- what the buffer calls ------------------------------------------------------------------------------------

    def add(self, index: Any) -> None:
        """Called after one place was written."""
        self.extend(index)

    def extend(self, index: Any) -> None:
        """Called after places were written; they are read before the next sample."""
        if index is None:
            return  # the writer kept nothing
        places = np.asarray(torch.as_tensor(index).cpu(), np.int64)
        if places.ndim > 1:
            raise ValueError(f"storage must have one dimension, got places of shape {places.shape}; use ndim=1")
        places = places.reshape(-1)
        self._pending.append(places[places >= 0])

    def sample(self, storage: Any, batch_size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return places, and importance weights as ``info["priority_weight"]`` (and ``"_weight"``)."""
        size = getattr(storage, "max_size", self._max_capacity)
        if size < self._max_capacity:
            raise ValueError(f"max_capacity must be the storage's size, {size}, got {self._max_capacity}")
        if not self._pending and len(self.picker) == 0:
            self._pending = [np.arange(len(storage))]  # the storage was filled before it got this sampler
        self._add_new(storage)
        if len(self.picker) == 0:
            raise RuntimeError("cannot sample from an empty storage")
        places, weights = self.picker.pick(batch_size)
        weight = torch.from_numpy(weights.copy())
        return torch.from_numpy(places.copy()), {"_weight": weight, "priority_weight": weight}

    def update_priority(self, index: Any, priority: Any, *, storage: Any = None) -> None:
        """Report TD errors (or other priorities) by place."""
        errors = torch.as_tensor(priority).detach().cpu().reshape(-1).double().numpy()
        if (errors == NO_ERROR).all():
            return  # a new row
        if storage is not None:
            self._add_new(storage)
        places = np.asarray(torch.as_tensor(index).cpu(), np.int64).reshape(-1)
        self.picker.update(places, np.broadcast_to(errors, places.shape) if len(errors) == 1 else errors)

    def mark_update(self, index: Any, *, storage: Any = None) -> None:
        """Called after values were changed in place; their rows stay the same."""

    @property
    def default_priority(self) -> float:
        """None: the sampler chooses the priority of new rows."""
        return NO_ERROR

    def _empty(self) -> None:
        self.picker.clear()
        self._pending, self._lanes.of = [], {}

    # -- reading what was stored ----------------------------------------------------------------------------------

    def _add_new(self, storage: Any) -> None:
        if not self._pending:
            return
        places = np.concatenate(self._pending)
        self._pending = []
        if not len(places):
            return
        if len(places) > 1:  # of a place that was written twice only the last content is left
            _, last = np.unique(places[::-1], return_index=True)
            places = places[np.sort(len(places) - 1 - last)]
        if places.max() >= self._max_capacity:
            raise ValueError(
                f"max_capacity must be the storage's size, at least {places.max() + 1}, got {self._max_capacity}"
            )
        data: Any = storage.get(_index_of(places, storage))
        data = torch.stack(data) if isinstance(data, list) else data
        now = [self._column(data, key) for key in self._keys]
        following = [self._column(data, ("next", *key)) for key in self._keys]
        reward = self._column(data, ("next", "reward")).reshape(len(places), -1).sum(axis=1)
        terminated = self._flags(data, "terminated", len(places))
        done = self._flags(data, "done", len(places)) | self._flags(data, "truncated", len(places))
        trajectories = data.get(TRAJECTORY, None)
        numbers = (
            np.zeros(len(places), np.int64)
            if trajectories is None
            else np.asarray(trajectories).reshape(len(places), -1)[:, 0]
        )
        for i, place in enumerate(places.tolist()):
            lane = self._lanes.take(int(numbers[i]), ends=bool(done[i] | terminated[i]))
            self.picker.add(
                [place],
                [lane],
                [[column[i] for column in now]],
                reward[i],
                [[column[i] for column in following]],
                terminated[i],
                done[i] & ~terminated[i],
            )

    def _column(self, data: Any, key: tuple[str, ...]) -> np.ndarray[Any, Any]:
        found = data.get(key, None)
        if found is None:
            named = key[0] if len(key) == 1 else key
            raise KeyError(f"BacksweepSampler needs {named!r} in the storage, got {sorted(map(str, data.keys(True)))}")
        column: np.ndarray[Any, Any] = found.detach().cpu().numpy()
        return column

    def _flags(self, data: Any, name: str, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        found = data.get(("next", name), None)
        if found is None:
            return np.zeros(count, np.bool_)
        flags: np.ndarray[Any, np.dtype[np.bool_]] = found.detach().cpu().numpy().reshape(count, -1).any(axis=1)
        return flags

    # -- saving ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything, as tensors of bytes."""
        files = {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in self._files().items()}
        return {"files": files, "lanes": dict(self._lanes.of), "pending": [each.tolist() for each in self._pending]}

    def _files(self) -> dict[str, bytes]:
        return {name: data for name, data in self.picker.to_files().items() if data}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; after an error everything is as it was."""
        lanes, pending = dict(state_dict["lanes"]), [np.asarray(each, np.int64) for each in state_dict["pending"]]
        self.picker.from_files({name: tensor.numpy().tobytes() for name, tensor in state_dict["files"].items()})
        self._lanes.of, self._pending = lanes, pending

    def dumps(self, path: Any) -> None:
        """Save to a folder; nothing is pickled."""
        self.picker.save(Path(path))
        arrays = {
            "places": np.concatenate([np.zeros(0, np.int64), *self._pending]),
            "trajectories": np.array(list(self._lanes.of.items()), np.int64).reshape(-1, 2),
        }
        write_snapshot(Path(path, UNREAD), arrays, {}, kind=KIND, version=VERSION)

    def loads(self, path: Any) -> None:
        """Restore what `dumps` saved; after an error everything is as it was."""
        pending: np.ndarray[Any, Any] = np.zeros(0, np.int64)
        lanes: dict[Any, int] = {}
        if Path(path, UNREAD).exists():  # saves of the first releases have none
            arrays = read_snapshot(Path(path, UNREAD), kind=KIND, versions={VERSION}).arrays
            pending, lanes = _checked(arrays, self._max_capacity, self._lanes.count, Path(path, UNREAD))
        self.picker.load(Path(path))
        self._pending, self._lanes.of = [pending], lanes


def _checked(
    arrays: Mapping[str, np.ndarray[Any, Any]], places: int, lanes: int, folder: Path
) -> tuple[np.ndarray[Any, Any], dict[Any, int]]:
    """Return the unread places and the lanes of trajectories that were saved."""
    nothing = np.zeros(0)
    unread, trajectories = arrays.get("places", nothing), arrays.get("trajectories", nothing)
    try:
        need(unread.dtype == np.int64 and unread.ndim == 1, "places must be numbers")
        pairs = trajectories.dtype == np.int64 and trajectories.shape[1:] == (2,)
        need(pairs, "trajectories must be pairs of numbers")
        need_within(unread, 0, places, "unread places")
        need_within(trajectories[:, 1], 0, lanes, "lanes of trajectories")
        of = dict(trajectories.tolist())
        need(len(set(of.values())) == len(trajectories), "a trajectory or lane is named twice")
    except ContentsError as error:
        raise SnapshotError(folder, str(error), NOT_OURS) from error
    return unread, of
