"""Steps that are checked and collected in one place and added to a replay in another.

A `ChunkBuilder` takes what `Replay.add` takes, with the same checks and errors, where environments run. `take` returns
the steps so far as plain arrays, in which each observation is stored once. `add_chunk` adds them to a replay,
whose rows are then those that `Replay.add` would have made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.jit.interrupts import uninterrupted
from backsweep.replay.argument_checks import positive_int
from backsweep.replay.autoreset import Autoreset, Check, Mode, stage_transitions
from backsweep.replay.components import ReplayComponents
from backsweep.snapshot.contents import need, need_finite, need_within
from backsweep.store.layout import Layout
from backsweep.store.ring_kernels import ENDED, SKIP, TERMINATED, UNSEEN
from backsweep.store.staging import LARGEST_REWARD, UNSEEN_WORD, Staging, write_tree


@dataclass(frozen=True)
class Chunk:
    """Steps of some environments, one after another, as arrays of (steps, environments, ...).

    Words and bytes are those that a store keeps. A step leads to the next step's observation, unless its place (step *
    environments + environment) is among `apart`; then its successor is among `successors`.
    """

    words: NDArray[np.uint64]
    actions: NDArray[np.uint8]
    rewards: NDArray[np.float64]
    flags: NDArray[np.uint8]
    apart: NDArray[np.int64]
    successors: NDArray[np.uint64]

    @property
    def rows(self) -> int:
        """How many transitions it holds."""
        return int(np.count_nonzero(self.flags != SKIP))

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        return {name: getattr(self, name) for name in Chunk.__dataclass_fields__}

    def all_successors(self) -> NDArray[np.uint64]:
        """Return what each step leads to."""
        whole = np.empty_like(self.words)
        whole[:-1] = self.words[1:]
        whole.reshape(-1, whole.shape[-1])[self.apart] = self.successors
        return whole


class ChunkBuilder:
    """Collects steps of `num_envs` environments; its parameters are those of `Replay`."""

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        num_envs: int = 1,
        *,
        n_step: int = 1,
        frame_stack: int = 1,
        autoreset: Mode | None = None,
        check_autoreset: Check = "warn",
        cast: bool = False,
        steps: int = 64,
    ) -> None:
        self.num_envs = positive_int("num_envs", num_envs)
        self._steps = positive_int("steps", steps)
        layout = Layout(observation_space, "observation", check_box_bounds=False, frame_stack=frame_stack, cast=cast)
        actions = Layout(action_space, "action", check_box_bounds=True, cast=cast)
        self.staging = Staging(layout, actions, self.num_envs)
        self.staging.largest_reward = LARGEST_REWARD / n_step
        self._autoreset = Autoreset(autoreset, check_autoreset, self.num_envs)
        self._last = np.zeros((self.num_envs, layout.words), np.uint64)
        self._has_last = np.zeros(self.num_envs, np.bool_)
        self.truncations_left_out = 0
        """Of environments that never show their last observation."""
        self._count = 0
        self._words = np.empty((self._steps, self.num_envs, layout.words), np.uint64)
        self._successors = np.empty_like(self._words)
        self._actions = np.empty((self._steps, self.num_envs, actions.nbytes), np.uint8)
        self._rewards = np.empty((self._steps, self.num_envs), np.float64)
        self._flags = np.empty((self._steps, self.num_envs), np.uint8)

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether `take` has to be called before the next step."""
        return self._count == self._steps

    def last_successor(self, lane: int) -> NDArray[np.uint64] | None:
        """Return the words of what an environment's last step led to, None before its first."""
        return self._last[lane] if self._has_last[lane] else None

    def add(
        self,
        observation: Any,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: Any,
        terminated: ArrayLike,
        truncated: ArrayLike,
        *,
        final_observation: Sequence[Any] | None = None,
        mask: ArrayLike | None = None,
        successor_unknown: ArrayLike | None = None,
    ) -> None:
        """Check one step of each environment and keep it; the arguments are those of `Replay.add`."""
        if self.full:
            raise ValueError(f"{self._steps} steps are waiting: call take first")
        arguments = (observation, action, reward, next_observation, terminated, truncated)
        some_end, skipped = stage_transitions(
            self, self._autoreset, arguments, final_observation, mask, None, successor_unknown
        )
        self.truncations_left_out += skipped
        self._keep()
        if some_end or self._autoreset.some_ended:
            self._autoreset.note_ends(self, None)

    def _keep(self) -> None:
        staging, n, place = self.staging, self.num_envs, self._count
        self._words[place] = staging.words[:n]
        self._successors[place] = staging.words[n:]
        self._actions[place] = staging.action_bytes
        self._rewards[place] = staging.rewards
        self._flags[place] = staging.flags
        taken = staging.flags != SKIP
        self._last[taken] = staging.words[n:][taken]
        self._has_last |= taken
        self._count += 1

    def take(self) -> Chunk | None:
        """Return the steps that are waiting, None if there are none, and begin again."""
        count, self._count = self._count, 0
        if count == 0:
            return None
        words, successors = self._words[:count].copy(), self._successors[:count]
        apart = np.ones((count, self.num_envs), np.bool_)
        apart[:-1] = (successors[:-1] != words[1:]).any(axis=2)
        apart &= self._flags[:count] != SKIP
        return Chunk(
            words,
            self._actions[:count].copy(),
            self._rewards[:count].copy(),
            self._flags[:count].copy(),
            np.flatnonzero(apart),
            successors[apart],
        )


def add_chunk(replay: ReplayComponents, chunk: Chunk, lanes: NDArray[np.int64]) -> int:
    """Add the steps of a chunk to a replay, its environments to the given lanes; return how many rows were added."""
    with replay._lock:
        store, sampler = replay._store, replay._sampler
        successors = chunk.all_successors()
        begin = store.total
        for step in range(len(chunk.words)):
            first = store.total
            store.staging.stage_words(
                lanes,
                chunk.words[step],
                successors[step],
                chunk.actions[step],
                chunk.rewards[step],
                chunk.flags[step],
            )
            try:
                replay._add_staged()  # type: ignore[attr-defined]
                sampler.added(first, store.total)
            except BaseException:
                # As in `Replay.add`: the sampler must know all rows of the store.
                if store.total != first:
                    with uninterrupted():
                        sampler.added(first, store.total)
                raise
        return store.total - begin


def chunk_from_arrays(arrays: Mapping[str, NDArray[Any]], replay: ReplayComponents) -> Chunk:
    """Return a chunk that comes from a file, if it is one that a `ChunkBuilder` of this replay's spaces can have made.

    Raises
    ------
    ContentsError
        If it is not: a store uses what it is given without further checks.
    """
    names = set(Chunk.__dataclass_fields__)
    need(set(arrays) == names, f"a chunk has the arrays {sorted(names)}, not {sorted(arrays)}")
    chunk = Chunk(**arrays)
    layout, action_layout = replay._store.layout, replay._store.action_layout
    need(chunk.flags.ndim == 2 and len(chunk.flags) > 0, "its flags must have two axes and a step")
    steps, envs = chunk.flags.shape
    count = len(chunk.apart)
    expected: dict[str, tuple[tuple[int, ...], Any]] = {
        "words": ((steps, envs, layout.words), np.uint64),
        "actions": ((steps, envs, action_layout.nbytes), np.uint8),
        "rewards": ((steps, envs), np.float64),
        "flags": ((steps, envs), np.uint8),
        "apart": ((count,), np.int64),
        "successors": ((count, layout.words), np.uint64),
    }
    for name, (shape, dtype) in expected.items():
        array = arrays[name]
        need(
            array.shape == shape and array.dtype == dtype, f"{name} is {array.dtype} {array.shape}, not {dtype} {shape}"
        )
    taken = chunk.flags != SKIP
    need(not (chunk.flags[taken] & ~np.uint8(ENDED | UNSEEN)).any(), "its flags have bits that mean nothing")
    unseen = taken & ((chunk.flags & UNSEEN) != 0)
    need((chunk.flags[unseen] & TERMINATED).all(), "unseen states come after terminations alone")
    need_within(chunk.apart, 0, steps * envs, "its places")
    need(bool((np.diff(chunk.apart) > 0).all()), "its places do not rise")
    need(
        np.isin(np.flatnonzero(taken[-1]) + (steps - 1) * envs, chunk.apart).all(),
        "its last steps have no successors",
    )
    need_finite(chunk.rewards[taken], "its rewards")
    need(bool((np.abs(chunk.rewards[taken]) <= replay._store.staging.largest_reward).all()), "rewards are too large")
    successors = chunk.all_successors()
    need(
        np.array_equal(successors[unseen], chunk.words[unseen] ^ UNSEEN_WORD), "an unseen state is not as it should be"
    )
    _need_fit(layout, np.concatenate([chunk.words[taken], successors[taken & ~unseen]]), "its observations")
    _need_fit(action_layout, np.ascontiguousarray(chunk.actions[taken]).view(np.uint64), "its actions")
    return chunk


def _need_fit(layout: Layout, words: NDArray[np.uint64], what: str) -> None:
    """Need words to be those of values that the layout takes."""
    if not len(words):
        return
    values = layout.as_given(layout.views(words))
    try:
        checked = layout.check(values, len(words), what)
    except (TypeError, ValueError) as error:
        need(False, f"{what} do not fit their space: {error}")
    again = np.zeros_like(words)
    write_tree(layout.views(again), checked, slice(None))
    need(np.array_equal(again, words), f"{what} have bytes that belong to nothing")
