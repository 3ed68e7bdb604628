"""Chooses rows for frameworks that store transitions themselves.

Its replay stores a 128-bit hash of each observation, so nothing large is stored twice.

    place    where the framework stores a transition
    row      the replay's number for it

When the framework reuses a place it gets a new row, so picks and priorities of the old row are recognised as outdated.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

from backsweep.encoding import ExactBytes
from backsweep.replay import Replay
from backsweep.samplers import Sampler
from backsweep.saving import NOT_OURS
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from backsweep.snapshot.contents import ContentsError, need, need_within
from backsweep.snapshot.file_dict import files_of, write_files
from backsweep.store.layout import host_array

KIND = "backsweep row picker"
VERSION = 1
HASH_SPACE = gym.spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64)
NOTHING = -1
TRIES = 4


def hash_of(observation: Any) -> NDArray[np.int64]:
    """Return the hash of one observation: an array, or dicts, tuples or lists of them."""
    digest = xxhash.xxh3_128()
    _feed(observation, digest)
    return np.frombuffer(digest.digest(), np.int64)


def _feed(observation: Any, digest: Any) -> None:
    if hasattr(observation, "items"):
        for name, inner in sorted(observation.items()):
            digest.update(str(name).encode())
            _feed(inner, digest)
    elif isinstance(observation, (tuple, list)):
        for inner in observation:
            _feed(inner, digest)
    else:
        array = np.ascontiguousarray(host_array(observation))
        digest.update(_form(array.dtype, array.shape))
        digest.update(array.reshape(-1).view(np.uint8))


@lru_cache(maxsize=64)
def _form(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return a name of an array's form; numpy takes longer to write it than the hash of a small observation does."""
    return f"{dtype}{shape}".encode()


def _check_places(arrays: Mapping[str, NDArray[Any]], replay: Replay) -> None:
    """Raise a ContentsError unless each live row has a place, and each place a row or nothing."""
    for name in ("place_of_slot", "row_of_place"):
        array = arrays.get(name)
        fits = array is not None and array.dtype == np.int64 and array.shape == (replay.capacity,)
        need(fits, f"{name} must hold {replay.capacity} numbers")
    live = np.arange(replay.oldest, replay.total) % replay.capacity
    need_within(arrays["place_of_slot"], NOTHING, replay.capacity, "places")
    need_within(arrays["place_of_slot"][live], 0, replay.capacity, "places of live rows")
    need_within(arrays["row_of_place"], NOTHING, replay.total, "rows of places")


class RowPicker:
    """A sampler over the places of another library's storage.

    Parameters
    ----------
    places
        Number of places.
    lanes
        Number of streams of episodes.
    sampler, seed
        As for `Replay`.
    """

    def __init__(self, places: int, lanes: int, sampler: Sampler | None, seed: int) -> None:
        self.replay = Replay(
            HASH_SPACE,
            gym.spaces.Discrete(1),  # actions are not used
            places,
            sampler,
            encoder=ExactBytes(),
            num_envs=lanes,
            check_autoreset="off",
            seed=seed,
        )
        self._place_of_slot = np.full(places, NOTHING, np.int64)
        self._row_of_place = np.full(places, NOTHING, np.int64)
        self._picked: dict[str, NDArray[Any]] = {}

    def add(
        self,
        places: ArrayLike,
        lanes: ArrayLike,
        observations: list[Any],
        rewards: ArrayLike,
        next_observations: list[Any],
        terminated: ArrayLike,
        truncated: ArrayLike,
        known: ArrayLike | None = None,
    ) -> None:
        """Add the transitions stored at `places`, one for each given lane.

        `known` says which successors are known; a truncated step without one cannot bootstrap and is never picked.
        """
        count = len(observations)
        places = np.asarray(places, np.int64).reshape(count)
        rows = self.replay.add(
            np.stack([hash_of(each) for each in observations]),
            np.zeros(count, np.int64),
            np.asarray(host_array(rewards), np.float64).reshape(count),
            np.stack([hash_of(each) for each in next_observations]),
            np.asarray(host_array(terminated), np.bool_).reshape(count),
            np.asarray(host_array(truncated), np.bool_).reshape(count),
            lanes=None if self.replay.num_envs == 1 else np.asarray(lanes, np.int64).reshape(count),
            successor_unknown=None if known is None else ~np.asarray(known, np.bool_),
        )
        self._row_of_place[places] = rows
        kept = rows >= 0
        self._place_of_slot[rows[kept] % self.replay.capacity] = places[kept]

    def __len__(self) -> int:
        return len(self.replay)

    def pick(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return `count` places and their importance weights."""
        if count > self.replay.capacity:
            raise ValueError(f"batch_size must be at most the buffer's size, {self.replay.capacity}, got {count}")
        picks = self.replay.pick(count)
        rows, weights = picks.row.copy(), np.array(picks.weight, np.float32)
        places = self._places(rows)
        for _ in range(TRIES):
            outdated = np.flatnonzero(self._row_of_place[places] != rows)
            if not len(outdated):
                break
            again = self.replay.pick(len(outdated))
            assert again.weight is not None
            rows[outdated], weights[outdated] = again.row, again.weight
            places = self._places(rows)
        # Rows that are still outdated are replaced by the newer transition at their place.
        rows = self._row_of_place[places]
        self._picked = {"places": places, "rows": rows, "weights": weights}
        return places, weights

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        places: NDArray[np.int64] = self._place_of_slot[rows % self.replay.capacity]
        return places

    def weights_of(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of the last pick for these places; 1 for others."""
        if self._is_last_pick(places):
            return self._picked["weights"].copy()
        return np.ones(len(places), np.float32)

    def update(self, places: ArrayLike, td_error: Any) -> None:
        """Report TD errors of transitions by place."""
        places = np.asarray(places, np.int64).reshape(-1)
        rows = self._picked["rows"] if self._is_last_pick(places) else self._row_of_place[places]
        if hasattr(td_error, "detach"):
            td_error = td_error.detach().cpu().numpy()
        errors = np.asarray(host_array(td_error), np.float64).reshape(len(places), -1).mean(axis=1)
        known = rows >= 0
        self.replay.update_priorities(rows[known], errors[known])

    def _is_last_pick(self, places: NDArray[np.int64]) -> bool:
        return "places" in self._picked and np.array_equal(self._picked["places"], places)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything to `folder`, as `Replay.save` does."""
        self.replay.save(Path(folder, "replay"))
        arrays = {"place_of_slot": self._place_of_slot, "row_of_place": self._row_of_place}
        write_snapshot(Path(folder, "places"), arrays, {}, kind=KIND, version=VERSION)

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Restore what was saved in `folder`; a user-defined sampler is that of this picker.

        After an error the picker is as it was.
        """
        own = self.replay
        replay = Replay.load(Path(folder, "replay"), sampler=own.sampler)
        for found, expected, what in (
            (replay.capacity, own.capacity, "places"),
            (replay.num_envs, own.num_envs, "lanes"),
            (replay.observation_space, own.observation_space, "as space of hashes"),
        ):
            if found != expected:
                raise ValueError(f"folder: it was saved for {found} {what}, expected {expected}")
        path = Path(folder, "places")
        arrays = read_snapshot(path, kind=KIND, versions={VERSION}).arrays
        try:
            _check_places(arrays, replay)
        except ContentsError as error:
            raise SnapshotError(path, str(error), NOT_OURS) from error
        self.replay, self._picked = replay, {}
        self._place_of_slot[:] = arrays["place_of_slot"]
        self._row_of_place[:] = arrays["row_of_place"]

    def to_files(self) -> dict[str, bytes]:
        """Return the files of a save, for checkpoints that need one object."""
        with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
            self.save(folder)
            return files_of(Path(folder))

    def from_files(self, files: Mapping[str, bytes]) -> None:
        """Restore what `to_files` returned."""
        with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
            write_files(Path(folder), files)
            self.load(folder)

    def clear(self) -> None:
        """Remove all transitions."""
        self.replay.clear()
        self._place_of_slot[:] = self._row_of_place[:] = NOTHING
        self._picked = {}
