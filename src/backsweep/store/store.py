"""The ring of transitions as a class over the kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import address_table
from backsweep.jit.mapped_file import MappedFile
from backsweep.jit.memory import READ_ALL_OVER, WRITTEN_ALL_OVER, reserve
from backsweep.jit.random_streams_kernels import mix
from backsweep.machine_memory import physical_memory
from backsweep.snapshot.contents import need
from backsweep.snapshot.saved_component import CheckStep, SavedComponent
from backsweep.store import distinct_kernels as distinct
from backsweep.store import reading_kernels, ring_kernels, store_kernels
from backsweep.store.distinct_kernels import RECORD_COUNTERS, RECORDS_HIGH, RECORDS_LIVE, Records
from backsweep.store.layout import Layout
from backsweep.store.output import Output, OutputPool
from backsweep.store.ring_kernels import (
    EPISODES_BROKEN,
    EPISODES_HIGH,
    EPISODES_LIVE,
    LANE_LAST,
    LIVE,
    NEXT_OBSERVATION,
    TOTAL,
    Ring,
)
from backsweep.store.staging import Staging, write_tree
from backsweep.store.store_check import StoreCheck
from backsweep.types import Rows

LARGEST_CAPACITY = 2**29  # slots and pool places are 32-bit numbers


def power_of_two_at_least(number: int) -> int:
    """Return the smallest power of two that is `number` or more."""
    return 1 << max(int(number) - 1, 0).bit_length()


class RecordTable:
    """Fixed-width records, each distinct one stored once; `distinct_kernels.py` describes the layout."""

    def __init__(
        self, most: int, words: int, counters: NDArray[np.int64], file: Path | None = None, likely: int | None = None
    ) -> None:
        # Half full at most with as many records as are likely, and never full, where a search would not end.
        places = power_of_two_at_least(max(2 * (most if likely is None else likely), most + most // 8 + 1))
        shape = (most, words)
        self._file = None if file is None else MappedFile(file, shape, np.uint64)
        self.records = reserve(shape, np.uint64) if self._file is None else self._file.array
        self.uses = reserve((most,), np.int32)
        self.hashes = reserve((most,), np.uint64)
        self.table = reserve((places,), np.uint64, WRITTEN_ALL_OVER)
        self.changed = reserve((most // distinct.CHANGED_BLOCK + 1,), np.bool_)
        with np.errstate(over="ignore"):
            weights = np.array([mix(np.uint64(i + 1)) | np.uint64(1) for i in range(words)], np.uint64)
        self.bundle = Records(self.records, self.uses, self.hashes, self.table, self.changed, weights, counters)

    def make_room(self, count: int) -> None:
        """Make sure that the first `count` records can be written; raise OSError if the disk is full."""
        if self._file is not None:
            self._file.allocate(min(count, len(self.records)) * self.records.strides[0])

    def may_have_changed(self, start: int, stop: int) -> bool:
        """Return whether any of the records start..stop-1 may differ from the last save."""
        block = distinct.CHANGED_BLOCK
        return bool(self.changed[start // block : -(-stop // block)].any())


class Store(SavedComponent):
    """A ring of `capacity` transitions for `num_envs` lanes.

    ``staging`` holds a call's transitions before anything changes. `add` then adds them with one kernel call.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        capacity: int,
        num_envs: int,
        frame_stack: int,
        file: Path | None,
        cast: bool = False,
    ) -> None:
        self.capacity = capacity
        self.num_envs = num_envs
        self.frame_stack = frame_stack
        self.layout = Layout(
            observation_space, "observation", check_box_bounds=False, frame_stack=frame_stack, cast=cast
        )
        self.action_layout = Layout(action_space, "action", check_box_bounds=True, cast=cast)
        depth, frame_words = self._frame_shape()
        self._refuse_what_cannot_fit()

        self.rows = reserve((capacity, ring_kernels.ROW_COLUMNS), np.int32, READ_ALL_OVER)
        self.values = reserve((capacity, ring_kernels.VALUE_COLUMNS), np.float64, READ_ALL_OVER)
        self._actions = reserve((capacity, self.action_layout.nbytes), np.uint8, READ_ALL_OVER)
        self.episodes = reserve((capacity, ring_kernels.EPISODE_COLUMNS), np.int64)
        self.live_episodes = reserve((capacity,), np.int32)
        self._lanes = np.zeros((num_envs, ring_kernels.LANE_COLUMNS), np.int64)
        self.counters = np.zeros(ring_kernels.STORE_COUNTERS, np.int64)
        self.record_counters = np.zeros(2 * RECORD_COUNTERS, np.int64)
        # A row needs at most two observations that no other row shares, each with its own frames.
        counters = self.record_counters
        # Of stacks, each row likely brings one: the other one is the successor of the row before.
        most = 2 * capacity * max(depth, 1)
        likely = capacity * depth if depth else most
        self._frames = RecordTable(most, frame_words, counters[:RECORD_COUNTERS], file, likely)
        self._stacks = RecordTable(2 * capacity if depth else 0, depth, counters[RECORD_COUNTERS:])
        self.in_file = file is not None

        self.staging = Staging(self.layout, self.action_layout, num_envs)
        self.fresh = self.staging.fresh
        self.outputs = OutputPool(self.layout, self.action_layout)
        """Output arrays for batches."""
        # The arrays never move, so their addresses are stored once.
        ring = Ring(
            self.rows, self.values, self._actions, self.episodes, self.live_episodes, self._lanes, self.counters
        )
        self.bundles = (self.staging.bundle, ring, self._frames.bundle, self._stacks.bundle)
        """In the order of the table."""
        self.table = address_table(self.bundles)

    def _frame_shape(self) -> tuple[int, int]:
        """Return the number of frames in a stack (0: no stacks) and of words in a frame."""
        if self.frame_stack == 1:
            return 0, self.layout.words
        field = self.layout.single
        assert field is not None, "Layout refuses stacks of anything but a Box"
        if (field.nbytes // self.frame_stack) % 8:
            raise ValueError(
                f"frame_stack={self.frame_stack}: a frame must be a multiple of 8 bytes, "
                f"got {field.nbytes // self.frame_stack} for {self.layout.space}"
            )
        return self.frame_stack, self.layout.words // self.frame_stack

    def _refuse_what_cannot_fit(self) -> None:
        least = self.capacity * (
            ring_kernels.ROW_COLUMNS * 4 + ring_kernels.VALUE_COLUMNS * 8 + self.action_layout.nbytes
        ) + self.num_envs * (2 * self.layout.nbytes)
        memory = physical_memory()
        if self.capacity > LARGEST_CAPACITY or (memory is not None and least > memory):
            fits = "" if memory is None else f"; this machine has {memory / 2**30:.1f} GiB of memory"
            raise ValueError(
                f"capacity={self.capacity} cannot fit: its rows alone take {least / 2**30:.1f} GiB, "
                f"and at most {LARGEST_CAPACITY} rows are possible{fits}"
            )

    # -- adding ---------------------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Make sure that a file has space for what is staged. Call it before any kernel that adds."""
        most_new = 2 * self.num_envs * self.frame_stack
        self.make_room_for_frames(int(self.record_counters[RECORDS_HIGH]) + most_new)

    def make_room_for_frames(self, count: int) -> None:
        """Make sure that a file has space for the first `count` frames. Call it before they are loaded."""
        self._frames.make_room(count)

    def add(self) -> int:
        """Add the staged transitions; return the number of new observations (`fresh` lists them)."""
        new: int = store_kernels.add_rows(self.table)
        return new

    # -- reading --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.counters[LIVE])

    @property
    def total(self) -> int:
        """The number of rows ever added, which is the next serial number."""
        return self.counters.item(TOTAL)

    @property
    def oldest(self) -> int:
        """The serial number of the oldest live row."""
        return int(self.counters[TOTAL] - self.counters[LIVE])

    def are_live(self, row: Rows) -> NDArray[np.bool_]:
        """Return for each serial number whether its row is live."""
        live: NDArray[np.bool_] = (row >= self.oldest) & (row < self.total)
        return live

    def last_successor(self, lane: int) -> NDArray[np.uint64] | None:
        """Return the words of the successor of a lane's last step; None if that row is gone."""
        serial = int(self._lanes[lane, LANE_LAST]) - 1
        if not self.oldest <= serial < self.total:
            return None
        words: NDArray[np.uint64] = self.observation_words(
            self.rows[serial % self.capacity, NEXT_OBSERVATION : NEXT_OBSERVATION + 1].astype(np.int64)
        )[0]
        return words

    def folded_steps(self, row: Rows, n_step: int) -> NDArray[np.int64]:
        """Return the number of steps that are combined in each live row when it is read."""
        out = np.empty(len(row), np.int64)
        reading_kernels.count_steps(row, n_step, self.rows, out)
        return out

    def read(self, row: Rows, n_step: int, gamma: float) -> Output:
        """Gather live rows into unused output arrays."""
        out = self.outputs.take(len(row))
        reading_kernels.read_rows(row, n_step, gamma, self.table, out.addresses)
        return out

    def observation_words(self, number: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return stored observations by number, as words; no number may be free."""
        if self.frame_stack == 1:
            stored: NDArray[np.uint64] = self._frames.records[number]
            return stored
        out = np.empty((len(number), self.layout.words), np.uint64)
        numbers = np.ascontiguousarray(number, np.int64)
        reading_kernels.copy_stacks(numbers, self._frames.records, self._stacks.records, out)
        return out

    def observations(self, number: NDArray[np.int64]) -> Any:
        """Return stored observations by number, in the form of their space."""
        return self.layout.as_given(self.layout.views(self.observation_words(number)))

    def observation_bytes(self, number: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return stored observations by number, as bytes; no number may be free."""
        return self.observation_words(number).view(np.uint8)

    def find_observation(self, observation: Any) -> int | None:
        """Return the number of a stored observation, or None if no live row holds it."""
        words = np.zeros((1, self.layout.words), np.uint64)
        write_tree(self.layout.views(words), self.layout.check(observation, 1, "observation"), slice(0, 1))
        number: int = reading_kernels.number_of(words[0], self.table)
        return None if number < 0 else number

    @property
    def discrete_actions(self) -> NDArray[Any]:
        """The actions of all slots as numbers, for a Discrete action space."""
        return self._actions.view(np.dtype(self.action_layout.space.dtype))[:, 0]

    @property
    def observation_uses(self) -> NDArray[np.int32]:
        """The number of rows that hold each observation; 0 for a free number."""
        return (self._stacks if self.frame_stack > 1 else self._frames).uses

    @property
    def observations_high(self) -> int:
        """An upper bound of observation numbers."""
        return int(self.record_counters[RECORDS_HIGH + (RECORD_COUNTERS if self.frame_stack > 1 else 0)])

    def statistics(self) -> dict[str, int]:
        """Count what is stored."""
        observations = self.record_counters[RECORD_COUNTERS:] if self.frame_stack > 1 else self.record_counters
        return {
            "rows": len(self),
            "rows_ever_added": self.total,
            "distinct_observations": int(observations[RECORDS_LIVE]),
            "distinct_frames": int(self.record_counters[RECORDS_LIVE]),
            "episodes": int(self.counters[EPISODES_LIVE]),
            "episodes_broken_off": int(self.counters[EPISODES_BROKEN]),
        }

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        tables = self._frames.table.nbytes + self._stacks.table.nbytes
        return tables + sum(array.nbytes for array in self.arrays().values())

    # -- saving ---------------------------------------------------------------------------------------------------

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        """Return every array that a save must hold, with the length of its used part."""
        used = min(self.total, self.capacity)
        frames, stacks = self.record_counters[RECORDS_HIGH], self.record_counters[RECORD_COUNTERS + RECORDS_HIGH]
        return {
            "counters": (self.counters, len(self.counters)),
            "record_counters": (self.record_counters, len(self.record_counters)),
            "lanes": (self._lanes, self.num_envs),
            "rows": (self.rows, used),
            "values": (self.values, used),
            "actions": (self._actions, used),
            "episodes": (self.episodes, int(self.counters[EPISODES_HIGH])),
            "live_episodes": (self.live_episodes, int(self.counters[EPISODES_LIVE])),
            "frames": (self._frames.records, int(frames)),
            "frame_uses": (self._frames.uses, int(frames)),
            "frame_hashes": (self._frames.hashes, int(frames)),
            "stacks": (self._stacks.records, int(stacks)),
            "stack_uses": (self._stacks.uses, int(stacks)),
            "stack_hashes": (self._stacks.hashes, int(stacks)),
        }

    def change_hints(self) -> dict[str, Callable[[int, int], bool]]:
        """Return for large arrays a function that tells whether entries may have changed since `mark_saved`."""
        return {"frames": self._frames.may_have_changed, "stacks": self._stacks.may_have_changed}

    def mark_saved(self) -> None:
        """Reset the record of changes."""
        self._frames.changed[:] = False
        self._stacks.changed[:] = False

    def record_tables(self) -> tuple[tuple[RecordTable, NDArray[np.int64]], tuple[RecordTable, NDArray[np.int64]]]:
        """The tables of frames and of stacks, each with its counters."""
        counters = self.record_counters
        return (self._frames, counters[:RECORD_COUNTERS]), (self._stacks, counters[RECORD_COUNTERS:])

    @property
    def action_words(self) -> NDArray[np.uint64]:
        """The actions of all slots as words."""
        return self._actions.view(np.uint64)

    @property
    def lane_ends(self) -> NDArray[np.int64]:
        """The serial number of each lane's last row + 1, or 0."""
        return self._lanes[:, LANE_LAST]

    def live_slots(self) -> NDArray[np.int64]:
        """Return the slots of the live rows, oldest first."""
        return np.arange(self.oldest, self.total) % self.capacity

    def checks(self) -> tuple[CheckStep, ...]:
        """Return the steps of the check of loaded arrays."""
        return StoreCheck(self).steps()

    def build_tables(self) -> None:
        """Build the tables of records from their hashes."""
        for table, first in ((self._frames, 0), (self._stacks, RECORD_COUNTERS)):
            high = self.record_counters[first + RECORDS_HIGH]
            built = distinct.rebuild_table(table.hashes, table.uses, table.table, high)
            need(built, "too many of its observations have the same hash")

    def finish_loading(self) -> None:
        """Nothing is left to build."""
