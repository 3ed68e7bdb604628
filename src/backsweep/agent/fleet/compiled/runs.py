"""Runs whose environments and replays are stepped together: one kernel call is one turn of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes, sampler_state, turn_kernels
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.exploration import EpsilonSchedule
from backsweep.jit.array_table import address_tables
from backsweep.jit.random_streams import generator_words, restore_generator_words
from backsweep.replay import Replay, ReplayMachinery
from backsweep.samplers.mixture import LiveMixture
from backsweep.store.ingest import key_kind
from backsweep.store.ingest_kernels import Keys
from backsweep.store.ring_kernels import ENDED, FLAGS
from backsweep.tasks.lanes import Bundle, Lanes
from backsweep.tasks.lanes_kernels import TASK_BUNDLES

FAMILIES = {"nchain": codes.CHAIN, "minigrid": codes.MINIGRID, "sokoban": codes.SOKOBAN}
FAILURES = {
    codes.NOT_FINITE: "the TD error is not a number",
    codes.NO_LEVEL: "the task found no level that can be played",
    codes.DEVICE_FULL: "it has seen more distinct observations than the device has memory for; "
    "raise observations_per_run, or lower capacity",
}
MOST_SOURCES = 64  # cached ways of dividing batches
PIECE = 4096  # stored observations that are copied at a time
NEW_PER_STEP = 3  # an episode's first observation as it is added, its successor, and the next episode's first


@dataclass(eq=False)
class Member:
    """What belongs to one run."""

    replay: Replay
    task: Lanes
    """Of one run."""
    explorer: np.random.Generator
    first_row: int
    """The first device row of the run's observations."""
    most_rows: int
    """The number of its device rows; one more row after them is for first observations of episodes."""
    bootstrap_at_timeout: bool = True
    running_return: float = 0.0
    running_length: int = 0
    episodes: int = 0
    explores: bool = False
    """Whether random actions depend on the graph."""


class CompiledRuns:
    """Members that step together. Between `hand_back` and the next turn they may be used separately."""

    def __init__(
        self, members: Sequence[Member], epsilon: EpsilonSchedule, batch_size: int, buffers: Executor, longest: int
    ) -> None:
        """Borrow the members.

        Parameters
        ----------
        members
            Each must be `supported`.
        epsilon
            Their common schedule of random actions.
        batch_size
            Rows of a batch.
        buffers
            Its arrays are what a turn exchanges with the learner.
        longest
            The largest number of steps between two calls of `hand_back`.
        """
        self.members = list(members)
        count = len(self.members)
        self.batch_size = batch_size
        self.row = np.zeros((count, batch_size), np.int64)
        self.ints = np.zeros((count, codes.RUN_INTS), np.int64)
        self.floats = np.zeros((count, codes.RUN_FLOATS), np.float64)
        self._log = np.zeros((count, longest + 1, 2), np.float64)
        self._epsilon = epsilon
        self._explorers = np.zeros((count, 4), np.uint64)
        machines = [member.replay.machinery for member in self.members]
        self._samplers = [machine.sampler for machine in machines]
        self._parts = [_known_parts(sampler) for sampler in self._samplers]
        most_parts = max(len(part) for part in self._parts)
        self._shares = np.zeros((count, most_parts), np.int64)
        self._sources: dict[bytes, NDArray[np.int64]] = {}  # by how batches are divided, which is in few ways
        self._leaders = _leaders(self._samplers)
        self._part_ints = np.zeros((count, most_parts, codes.PART_INTS), np.int64)
        self._part_floats = np.zeros((count, most_parts, codes.PART_FLOATS), np.float64)
        self._part_generators = np.zeros((count, most_parts, codes.PART_GENERATORS, 4), np.uint64)
        keys = [_known_key(machine) for machine in machines]
        for member in self.members:
            _check_kernels(member.task)
        self._actions = np.zeros((count, 1), np.int64)
        self._resting, self._chosen = np.zeros(1, np.bool_), np.ones(1, np.bool_)
        for run, (member, machine) in enumerate(zip(self.members, machines, strict=True)):
            ints = self.ints[run]
            ints[codes.RUN_FAMILY] = FAMILIES[member.task.FAMILY]
            ints[codes.RUN_ACTIONS] = member.task.single_action_space.n
            ints[codes.RUN_BYTES] = member.task.observations.nbytes
            ints[codes.RUN_KEY] = keys[run][0]
            ints[codes.RUN_PARTS] = len(self._parts[run])
            ints[codes.RUN_FIRST_ROW], ints[codes.RUN_MOST_ROWS] = member.first_row, member.most_rows
            ints[codes.RUN_BOOTSTRAP] = member.bootstrap_at_timeout
            ints[codes.RUN_N_STEP] = machine.n_step
            ints[codes.RUN_EXPLORES] = member.explores
            ints[codes.RUN_PLANS] = machine.planner is not None
            self.floats[run, codes.RUN_DISCOUNT] = machine.gamma
        self.buffers = buffers
        # Kernels are compiled for one precision; learners have one of two.
        self._errors = np.zeros((count, batch_size), np.float64)
        same = buffers.reward.dtype == np.float32
        self._numbers: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] = (
            (buffers.reward, buffers.discount, buffers.weight)
            if same
            else (
                np.zeros_like(self.row, np.float32),
                np.zeros_like(self.row, np.float32),
                np.ones_like(self.row, np.float32),
            )
        )
        self._bundles = [self._bundles_of(run, machine, keys[run][1]) for run, machine in enumerate(machines)]
        """All arrays whose addresses are in the table; this keeps them alive."""
        self.table = address_tables(self._bundles)
        self._new_places = np.zeros(NEW_PER_STEP * count, np.int64)
        self._new_bytes = np.zeros((NEW_PER_STEP * count, int(self.ints[:, codes.RUN_BYTES].max())), np.uint8)
        self.borrow()

    def _bundles_of(self, run: int, machine: ReplayMachinery, keys: Keys | None) -> list[Bundle | None]:
        """Return the bundles of a run, in the order of its table."""
        task, buffers = self.members[run].task, self.buffers
        own = codes.RunArrays(
            self.ints[run],
            self.floats[run],
            self._explorers[run],
            self._shares[run],
            self._log[run],
            self._actions[run],
            self._resting,
            self._chosen,
            task.observations.reshape(-1).view(np.uint8),
        )
        reward, discount, weight = (numbers[run] for numbers in self._numbers)
        one = slice(run, run + 1)
        batch = codes.Batch(
            buffers.best[one],
            buffers.current[one],
            self.row[run],
            buffers.rows[run],
            buffers.action[run],
            reward,
            discount,
            weight,
            self._errors[run],
        )
        graph = None if machine.graph is None else machine.graph.bundle
        planner = machine.planner
        plan = (None, None) if planner is None else (planner.model, planner.experience)
        task_bundles = [*task.bundles, *[None] * (TASK_BUNDLES - len(task.bundles))]
        bundles: list[Bundle | None] = [*machine.store.bundles, graph, keys, *task_bundles, own, batch, *plan]
        for place, part in enumerate(self._parts[run]):
            ints, floats = self._part_ints[run, place], self._part_floats[run, place]
            generators = self._part_generators[run, place]
            bundles += [
                codes.Part(ints, floats, generators, sampler_state.window_of(part)),
                sampler_state.bundle_of(part),
            ]
        return bundles

    # -- turns ----------------------------------------------------------------------------------------------------

    def turn(self, step: int, *, steps: int = 0, apply: bool = False, draw: bool = False) -> None:
        """Update priorities, take `steps` steps from `step` on, and draw a batch, as requested."""
        if apply:
            self._errors[:] = self.buffers.td_error / self.buffers.scales[:, None]
        what = (codes.APPLY if apply else 0) | (codes.STEP if steps else 0) | (codes.DRAW if draw else 0)
        if draw:
            self._split()
        chances = {self._epsilon(number) for number in range(step, step + steps)}
        if steps > 1 and chances != {1.0}:
            raise ValueError(f"steps must be 1 unless all actions are random, got {steps} from step {step} on")
        turn_kernels.turn_runs(what, step, steps, min(chances, default=0.0), self.table)
        buffers = self.buffers
        if draw and self._numbers[0] is not buffers.reward:
            buffers.reward[:], buffers.discount[:], buffers.weight[:] = self._numbers

    def _split(self) -> None:
        """Divide the batch between the parts of mixtures; members with the same division share it."""
        for leader, followers in self._leaders:
            sampler = self._samplers[leader]
            counts = sampler.split(self.batch_size) if isinstance(sampler, LiveMixture) else [self.batch_size]
            if self._shares[leader, : len(counts)].tolist() != counts:
                self._shares[np.ix_([leader, *followers], range(len(counts)))] = counts

    def sources(self) -> NDArray[np.int64]:
        """Return which part of its sampler each row of the last batches is from, (runs, batch); not to be changed."""
        divided = self._shares.tobytes()
        if divided not in self._sources:
            if len(self._sources) == MOST_SOURCES:
                self._sources.clear()
            ends = self._shares.cumsum(axis=1)
            self._sources[divided] = (np.arange(self.batch_size)[None, :, None] >= ends[:, None, :]).sum(axis=2)
        return self._sources[divided]

    def new_observations(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the new observations of the last step: their device rows, and their bytes (count, bytes)."""
        count = turn_kernels.collect_new(self.table, self._new_places, self._new_bytes)
        return self._new_places[:count], self._new_bytes[:count]

    def all_observations(self, run: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        """Yield all observations of a run for the device: the current one, then the stored ones in chunks."""
        member = self.members[run]
        store = member.replay.machinery.store
        size = int(self.ints[run, codes.RUN_BYTES])
        yield np.array([member.first_row + member.most_rows]), member.task.observations.reshape(1, -1).view(np.uint8)
        used = np.flatnonzero(store.observation_uses[: store.observations_high])
        for first in range(0, len(used), PIECE):
            numbers = used[first : first + PIECE]
            yield member.first_row + numbers, store.observation_bytes(numbers)[:, :size]

    # -- failures -------------------------------------------------------------------------------------------------

    def failures(self) -> list[tuple[int, str]]:
        """Return the failed runs, and why."""
        found = []
        for run in np.flatnonzero(self.ints[:, codes.RUN_STATE] != codes.GOING).tolist():
            reason = FAILURES[int(self.ints[run, codes.RUN_STATE])]
            found.append((run, f"at step {self.ints[run, codes.RUN_FAILED_AT]}: {reason}"))
        return found

    # -- borrowing and handing back -------------------------------------------------------------------------------

    def borrow(self) -> None:
        """Copy the state of the members' Python objects."""
        for run, member in enumerate(self.members):
            self._explorers[run] = generator_words(member.explorer)
            for place, part in enumerate(self._parts[run]):
                sampler_state.borrow(
                    part,
                    self._part_ints[run, place],
                    self._part_floats[run, place],
                    self._part_generators[run, place],
                )
            ints = self.ints[run]
            self.floats[run, codes.RUN_RETURN] = member.running_return
            self.floats[run, codes.RUN_LENGTH] = member.running_length
            ints[codes.RUN_EPISODES], ints[codes.RUN_LOGGED] = member.episodes, 0
            store = member.replay.machinery.store
            last = (store.total - 1) % store.capacity
            ints[codes.RUN_BEGAN] = not store.total or bool(store.rows[last, FLAGS] & ENDED)
            number = store.find_observation(member.task.observations[0]) if ints[codes.RUN_BEGAN] else None
            ints[codes.RUN_START] = -1 if number is None else number
            self.buffers.current[run] = turn_kernels.current_row(self.table[run])

    def hand_back(self, finished: Callable[[int, NDArray[np.float64], NDArray[np.int64]], None]) -> None:
        """Update the members' objects; `finished` is called with each run's ended episodes: returns, lengths."""
        for run, member in enumerate(self.members):
            restore_generator_words(member.explorer, self._explorers[run])
            for place, part in enumerate(self._parts[run]):
                sampler_state.hand_back(
                    part,
                    self._part_ints[run, place],
                    self._part_floats[run, place],
                    self._part_generators[run, place],
                )
            ints = self.ints[run]
            member.running_return = float(self.floats[run, codes.RUN_RETURN])
            member.running_length = int(self.floats[run, codes.RUN_LENGTH])
            member.episodes = int(ints[codes.RUN_EPISODES])
            logged = int(ints[codes.RUN_LOGGED])
            finished(run, self._log[run, :logged, 0].copy(), self._log[run, :logged, 1].astype(np.int64))
            ints[codes.RUN_LOGGED] = 0
        for leader, followers in self._leaders:
            sampler = self._samplers[leader]
            for follower in followers:
                other = self._samplers[follower]
                if isinstance(sampler, LiveMixture) and isinstance(other, LiveMixture):
                    other.owed = list(sampler.owed)


def supported(replay: Replay, task: Lanes) -> bool:
    """Return whether the kernels can step a run with this replay and task."""
    machine = replay.machinery
    single = machine.store.layout.single
    return (
        task.num_lanes == 1
        and machine.num_envs == 1
        and single is not None
        and single.frames == 1  # stored in the order of its bytes
        and task.moves_by_kernels_alone
        and sampler_state.parts_of(machine.sampler) is not None
        and key_kind(machine.store, machine.graph, machine.encoder) is not None
    )


def _known_parts(sampler: Any) -> list[Any]:
    known = sampler_state.parts_of(sampler)
    if known is None:
        raise ValueError(f"compiled runs cannot draw from {type(sampler).__name__}")
    return known


def _known_key(machine: ReplayMachinery) -> tuple[int, Keys | None]:
    kind = key_kind(machine.store, machine.graph, machine.encoder)
    if kind is None:
        raise ValueError(f"compiled runs cannot compute keys with {type(machine.encoder).__name__}")
    return kind


def _check_kernels(task: Lanes) -> None:
    if not task.moves_by_kernels_alone:
        raise ValueError(f"compiled runs cannot step {type(task).__name__}")


def _leaders(samplers: Sequence[Any]) -> list[tuple[int, list[int]]]:
    """Return groups of members with the same division of batches: the first of each, and the others."""
    groups: dict[Any, list[int]] = {}
    for run, sampler in enumerate(samplers):
        mixed = isinstance(sampler, LiveMixture)
        key = (tuple(sampler.shares), tuple(sampler.owed)) if mixed else None
        groups.setdefault(key, []).append(run)
    return [(runs[0], runs[1:]) for runs in groups.values()]
