"""Checks the transitions of a call and copies them to scratch memory before anything else changes.

words[lane]               a lane's observation
words[num_envs + lane]    its successor
flags[lane]               how its step ended, as bits; SKIP for a lane that adds nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Table, address_table
from backsweep.jit.objects import object_places
from backsweep.jit.objects_kernels import ObjectPlaces
from backsweep.store import argument_form_kernels
from backsweep.store.argument_form import usual_form
from backsweep.store.argument_form_kernels import NUMBERS_STAGED, OBSERVATIONS_STAGED, SOME_ENDED, Form
from backsweep.store.layout import Layout, host_array
from backsweep.store.ring_kernels import ENDED, REPLAY_BUNDLES, SKIP, TERMINATED, TRUNCATED, UNSEEN, Staged

LARGEST_REWARD = float(np.finfo(np.float32).max)  # batches hold 32-bit rewards
Arguments = tuple[Any, Any, Any, Any, Any, Any]
"""Observation, action, reward, next observation, terminated and truncated."""
UNSEEN_WORD = np.uint64(0x5BD1E995A7C63F1B)
"""Combined with every word of a state to represent the unseen state after it."""


@dataclass(frozen=True)
class Trajectory:
    """Checked consecutive steps, ready to be staged: step t leads from words[t] to words[t + 1]."""

    words: NDArray[np.uint64]
    action_words: NDArray[np.uint64]
    rewards: NDArray[np.float64]
    flags: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.rewards)


class Staging:
    """Scratch memory for one call's transitions, and the checks."""

    def __init__(self, layout: Layout, action_layout: Layout, num_envs: int) -> None:
        self.num_envs = num_envs
        self._layout, self._action_layout = layout, action_layout
        words = np.zeros((3 * num_envs, layout.words), np.uint64)
        self.words = words[: 2 * num_envs]  # only kernels use the rest
        self._action_words = np.zeros((num_envs, action_layout.words), np.uint64)
        self.action_bytes = self._action_words.view(np.uint8)
        self.observations = layout.views(self.words)
        self._actions = action_layout.views(self._action_words)
        self.rewards = np.zeros(num_envs, np.float64)
        self.limits = np.array([LARGEST_REWARD])
        self.flags = np.zeros(num_envs, np.uint8)
        self.hides_successors = False
        self.fresh = np.zeros((2 * num_envs, 2), np.int32)
        codes, kept = np.zeros(num_envs, np.uint64), np.zeros(num_envs, np.int64)
        self.numbers = np.zeros(num_envs, np.int64)
        """The serial number of each lane's row after an add, -1 for lanes that added nothing."""
        self.bundle = Staged(words, self.action_bytes, self.rewards, self.flags, self.fresh, codes, kept, self.numbers)
        places = object_places()
        self.forms: tuple[Form, ObjectPlaces] | None = None
        """What the kernel that takes arguments from their objects needs to know of them; None if it cannot."""
        self._given: Table | None = None
        if places is not None:
            # A table holds addresses only, so what they are addresses of is kept here.
            self.forms = usual_form(layout, action_layout, num_envs, self.limits), places
            self._given = address_table([self.bundle, *[None] * (REPLAY_BUNDLES - 1), *self.forms])

    @property
    def largest_reward(self) -> float:
        """The largest reward; lower with n_step, so that no sum overflows a 32-bit float."""
        return float(self.limits[0])

    @largest_reward.setter
    def largest_reward(self, largest: float) -> None:
        self.limits[0] = largest

    def stage(self, arguments: Arguments, lanes: NDArray[np.int64] | None, done: int | None = None) -> bool:
        """Check and stage one transition per lane, or per lane in `lanes`; return whether any ends an episode.

        `done` says what a kernel has staged of them, if one has tried.
        """
        self.begin()
        if lanes is not None:
            self._stage_some(arguments, lanes)
            return bool(self.flags[lanes].any())
        if done is None:
            done = 0 if self._given is None else argument_form_kernels.stage_arguments(id(arguments), self._given)
        observation, action, reward, next_observation, terminated, truncated = arguments
        n = self.num_envs
        if not done & OBSERVATIONS_STAGED:
            self._stage_observations(observation, next_observation, slice(0, n), n)
        if not done & NUMBERS_STAGED:
            write_tree(self._actions, self._action_layout.check(action, n, "action"), slice(0, n))
            _stage_rewards(self.rewards, reward, self.largest_reward)
            _stage_flags(self.flags, terminated, truncated)
            return bool(self.flags.any())
        return done & SOME_ENDED != 0

    def _stage_some(self, arguments: Arguments, lanes: NDArray[np.int64]) -> None:
        observation, action, reward, next_observation, terminated, truncated = arguments
        count = len(lanes)
        rewards, flags = np.zeros(count, np.float64), np.zeros(count, np.uint8)
        actions = self._action_layout.check(action, count, "action")
        _stage_rewards(rewards, reward, self.largest_reward)
        _stage_flags(flags, terminated, truncated)
        self._stage_observations(observation, next_observation, lanes, count)
        write_tree(self._actions, actions, lanes)
        self.rewards[lanes] = rewards
        self.flags[:] = SKIP
        self.flags[lanes] = flags

    def begin(self) -> None:
        """Clear what the last call may have left behind; call it before staging anything."""
        if self.hides_successors:
            # Padding bytes between the arrays of an observation must be 0.
            self.words[self.num_envs :] = 0
            self.hides_successors = False

    def trajectory(self, observation: Any, action: Any, reward: Any, terminated: Any, truncated: Any) -> Trajectory:
        """Check a trajectory: one more observation than steps, and an end only at the last step."""
        if not hasattr(action, "__len__") or getattr(action, "shape", None) == ():
            raise TypeError(f"action must hold one action for each step, got {type(action).__name__}")
        steps = len(action)
        if steps == 0:
            raise ValueError("action must hold at least one step, got none")
        observations = self._layout.check(observation, steps + 1, "observation")
        actions = self._action_layout.check(action, steps, "action")
        words = np.zeros((steps + 1, self._layout.words), np.uint64)
        action_words = np.zeros((steps, self._action_layout.words), np.uint64)
        rewards, flags = np.zeros(steps, np.float64), np.zeros(steps, np.uint8)
        _stage_rewards(rewards, reward, self.largest_reward)
        _stage_flags(flags, _last_flag(terminated, steps, "terminated"), _last_flag(truncated, steps, "truncated"))
        if flags[:-1].any():
            raise ValueError(
                f"terminated and truncated may be True only for the last of {steps} steps, "
                f"got True for step {np.flatnonzero(flags)[0]}"
            )
        write_tree(self._layout.views(words), observations, slice(None))
        write_tree(self._action_layout.views(action_words), actions, slice(None))
        return Trajectory(words, action_words, rewards, flags)

    def stage_step(self, lane: int, trajectory: Trajectory, step: int) -> None:
        """Stage one step of a trajectory for one lane; the others add nothing."""
        self.begin()
        self.words[lane] = trajectory.words[step]
        self.words[self.num_envs + lane] = trajectory.words[step + 1]
        self._action_words[lane] = trajectory.action_words[step]
        self.rewards[lane] = trajectory.rewards[step]
        self.flags[:] = SKIP
        self.flags[lane] = trajectory.flags[step]

    def stage_words(
        self,
        lanes: NDArray[np.int64],
        words: NDArray[np.uint64],
        successors: NDArray[np.uint64],
        actions: NDArray[np.uint8],
        rewards: NDArray[np.float64],
        flags: NDArray[np.uint8],
    ) -> None:
        """Lay down a step that was checked elsewhere for some lanes; the others add nothing."""
        self.begin()
        self.words[lanes] = words
        self.words[self.num_envs + lanes] = successors
        self.action_bytes[lanes] = actions
        self.rewards[lanes] = rewards
        self.flags[:] = SKIP
        self.flags[lanes] = flags
        self.hides_successors = bool(((flags & UNSEEN) != 0)[flags != SKIP].any())

    def skip(self, lanes: NDArray[np.bool_]) -> None:
        """Make these lanes add nothing."""
        self.flags[lanes] = SKIP

    def ends(self) -> NDArray[np.bool_]:
        """Return for each lane whether the staged (or just added) step ends its episode."""
        ends: NDArray[np.bool_] = (self.flags != SKIP) & ((self.flags & ENDED) != 0)
        return ends

    def stage_successor(self, lane: int, observation: Any, entry: int) -> None:
        """Replace the staged successor of one lane by an `entry` of final_observation."""
        place = self.num_envs + lane
        checked = self._layout.check(observation, 1, f"final_observation[{entry}]")
        write_tree(self.observations, checked, slice(place, place + 1))

    def forget_successors(self, lanes: NDArray[np.bool_]) -> int:
        """Mark the successors of these lanes as unseen; return the number of steps skipped.

        A terminated step does not depend on its successor, so a separate state that equals no observation replaces it.
        A truncated step needs the value of its successor, which is unknown, so it is skipped.
        """
        lanes = lanes & (self.flags != SKIP)
        going_on = lanes & ((self.flags & ENDED) == 0)
        if going_on.any():
            raise ValueError(
                "successor_unknown must be False where a step neither terminates nor is truncated, "
                f"got True for lane {np.flatnonzero(going_on)[0]}"
            )
        terminated = lanes & ((self.flags & TERMINATED) != 0)
        places = np.flatnonzero(terminated)
        self.hides_successors = len(places) > 0
        self.words[self.num_envs + places] = self.words[places] ^ UNSEEN_WORD
        self.flags[terminated] |= np.uint8(UNSEEN)
        self.flags[lanes & ~terminated] = SKIP
        return int(lanes.sum() - terminated.sum())

    def unseen(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for each place of `words` whether it represents an unseen state."""
        lane = places.astype(np.int64) - self.num_envs
        marked: NDArray[np.bool_] = (lane >= 0) & ((self.flags[lane] & UNSEEN) != 0)
        return marked

    def _stage_observations(self, observation: Any, next_observation: Any, lanes: Any, count: int) -> None:
        first = self._layout.check(observation, count, "observation")
        second = self._layout.check(next_observation, count, "next_observation")
        n = self.num_envs
        later = slice(n + lanes.start, n + lanes.stop) if isinstance(lanes, slice) else n + lanes
        write_tree(self.observations, first, lanes)
        write_tree(self.observations, second, later)


def write_tree(staged: Any, value: Any, place: Any) -> None:
    """Copy checked arrays into staging arrays of the same form."""
    if isinstance(staged, dict):
        for key, inner in staged.items():
            write_tree(inner, value[key], place)
    elif isinstance(staged, tuple):
        for inner, item in zip(staged, value, strict=True):
            write_tree(inner, item, place)
    else:
        staged[place] = value


def _column(value: Any, n: int) -> Any:
    """Return an array (n, 1) as (n,), and anything else unchanged."""
    return value.reshape(n) if type(value) is np.ndarray and value.shape == (n, 1) else value


def _numbers(value: Any, n: int, name: str) -> NDArray[Any]:
    """Return one number per lane as an array (n,)."""
    array: NDArray[Any] = _column(host_array(value, name), n)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a number per lane, got dtype {array.dtype}")
    if array.shape != (n,) and (n != 1 or array.shape != ()):
        raise ValueError(f"{name} must have shape {(n,)}, got {array.shape}")
    return array.reshape(n)


def _stage_rewards(staged: NDArray[np.float64], reward: Any, largest: float) -> None:
    """Check and stage a reward per lane, of any dtype."""
    n = len(staged)
    array = _numbers(reward, n, "reward").astype(np.float64)  # the largest reward does not fit a 16-bit one
    if not np.isfinite(array).all():
        raise ValueError(f"reward must be finite, got {reward!r:.200}")
    if (np.abs(array) > largest).any():
        raise ValueError(
            f"reward must fit a 32-bit float, also when n_step of them are added up: at most {largest:.3g}, "
            f"got {reward!r:.200}"
        )
    staged[:] = array


def _stage_flags(staged: NDArray[np.uint8], terminated: Any, truncated: Any) -> None:
    """Check how each lane's step ended and stage it as bits."""
    n = len(staged)
    ended = as_flags(terminated, n, "terminated"), as_flags(truncated, n, "truncated")
    staged[:] = ended[0] * np.uint8(TERMINATED)
    staged += ended[1] * np.uint8(TRUNCATED)


def _last_flag(value: Any, steps: int, name: str) -> Any:
    """Return flags for all steps from a flag of the last."""
    array = host_array(value, name)
    if array.ndim or steps == 1:
        return array
    flags = np.zeros(steps, array.dtype)
    flags[-1] = array
    return flags


def as_flags(value: Any, n: int, name: str) -> NDArray[np.bool_]:
    """Return a flag per lane as bools; numbers may only be 0 and 1."""
    if host_array(value, name).dtype.kind not in "biuf":
        raise TypeError(f"{name} must be True or False, got {value!r:.200}")
    array = _numbers(value, n, name)
    if array.dtype == np.bool_:
        return array
    flags: NDArray[np.bool_] = array != 0
    if not (flags == array).all():
        raise ValueError(f"{name} must be True or False (or 1 or 0), got {value!r:.200}")
    return flags
