"""Replay: a store and a sampler behind one face."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.autoreset import (
    CHECKS,
    MODES,
    Autoreset,
    Check,
    Mode,
    options_of_env,
    options_of_envs,
    require_finals,
    stage_finals,
)
from backsweep.checking import (
    checked_errors,
    checked_lanes,
    checked_mask,
    checked_rows,
    positive_int,
    refuse_update,
    spread,
)
from backsweep.encoding import DiscreteKey, Encoder, ExactBytes, Quantized, RandomProjection
from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.discrete import is_discrete
from backsweep.graph.graph import Graph, GraphView
from backsweep.jit.compilation import announce_first_compilation
from backsweep.jit.forks import guard
from backsweep.jit.random_streams import checked_seed, named_generator
from backsweep.planning import GraphValues
from backsweep.planning.planner import Planner, Progress, QValues, Renewal, checked_bounds
from backsweep.samplers import Experience, Sampler, Uniform
from backsweep.samplers.base import LiveSampler
from backsweep.samplers.episodic_backward_kernels import episode_rows
from backsweep.snapshot import SnapshotMemory
from backsweep.store import store_kernels
from backsweep.store.ingest import add_staged, tables_for
from backsweep.store.staging import as_flags
from backsweep.store.store import Store
from backsweep.store.store_kernels import CLEARED, EPISODE, FLAGS, LENGTH, TOTAL, TRUNCATED
from backsweep.types import Batch, Picks, Rows

FILE_NAME = "backsweep-observations"
BUILT_IN_ENCODERS = (DiscreteKey, ExactBytes, Quantized, RandomProjection)


@dataclass(frozen=True)
class ReplayMachinery:
    """What a replay is made of."""

    store: Store
    graph: Graph | None
    encoder: LiveEncoder
    sampler: LiveSampler
    n_step: int
    gamma: float
    num_envs: int
    planner: Planner | None


class Replay:
    """Experience replay: transitions go in, batches come out.

    Parameters
    ----------
    observation_space, action_space
        Box, Discrete, MultiDiscrete or MultiBinary spaces, or Dicts or Tuples of them (actions: not Dicts or Tuples).
    capacity
        How many transitions are kept; the oldest make way. Memory is taken as it is used.
    sampler
        How rows are chosen: `Uniform`, `Prioritized`, `EpisodicBackward`, `Topological`, a `Mixture` of them, or your
        own. It is a configuration and may be given to several replays.
    encoder
        How observations become vertices of the graph. By default `DiscreteKey` for discrete observations and
        `RandomProjection(dim=3)` for all others.
    values
        ``GraphValues(...)`` plans on the stored graph: after each `renew_values`, batches carry finished targets. For
        discrete actions and ``n_step=1``.
    num_envs
        With n > 1, `add` takes arrays with a leading axis n; each lane is its own stream of episodes.
    n_step, gamma
        Fold up to `n_step` steps into one transition when rows are read; `gamma` is the discount.
    frame_stack
        With k > 1, observations are stacks of k frames along their first or last axis (which has k times the channels
        of a frame), and each frame is kept once.
    autoreset
        How the environments start their next episode: ``"disabled"``, ``"next_step"``, ``"same_step"`` or
        ``"hidden"``; `for_envs` reads it from the environment. In next-step mode, Gymnasium's default for vector
        environments, the call after an episode's end carries no transition for that lane and is left out. In same-step
        mode the last observations come as `final_observation`. ``"hidden"`` is for environments that reset in the same
        step and never show those.
    check_autoreset
        What to do if the first episodes that end contradict that: ``"warn"``, ``"refuse"`` or nothing (``"off"``).
    cast
        Whether floats of another size are rounded to those of their space; without it they are refused.
    file
        A folder for a memory-mapped file that holds the observations, for replays larger than memory. It is working
        memory, not a save.
    seed
        The same seed and the same calls give the same rows on every machine.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        capacity: int = 1_000_000,
        sampler: Sampler | None = None,
        *,
        encoder: Encoder | None = None,
        values: GraphValues | None = None,
        num_envs: int = 1,
        n_step: int = 1,
        gamma: float = 0.99,
        frame_stack: int = 1,
        autoreset: Mode | None = None,
        check_autoreset: Check = "warn",
        cast: bool = False,
        file: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        for name, space in (("observation_space", observation_space), ("action_space", action_space)):
            if not isinstance(space, gym.Space):
                raise TypeError(f"{name} must be a gymnasium space, got {type(space).__name__}")
        if isinstance(action_space, (gym.spaces.Dict, gym.spaces.Tuple)):
            raise TypeError(f"action_space must be Box, Discrete, MultiDiscrete or MultiBinary, got {action_space}")
        self._capacity = positive_int("capacity", capacity)
        self._num_envs = positive_int("num_envs", num_envs)
        if self._num_envs > self._capacity:
            raise ValueError(f"capacity must be at least num_envs={num_envs}, got {capacity}")
        self._n_step = positive_int("n_step", n_step)
        if isinstance(gamma, bool) or not isinstance(gamma, (int, float)) or not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be between 0 and 1, got {gamma!r}")
        if autoreset not in (None, *MODES):
            raise ValueError(f"autoreset must be None or one of {', '.join(map(repr, MODES))}, got {autoreset!r}")
        if check_autoreset not in CHECKS:
            raise ValueError(f"check_autoreset must be one of {', '.join(map(repr, CHECKS))}, got {check_autoreset!r}")
        if not isinstance(cast, bool):
            raise TypeError(f"cast must be True or False, got {cast!r}")
        sampler = Uniform() if sampler is None else sampler
        if isinstance(sampler, type) or not isinstance(sampler, Sampler):
            raise TypeError(f"sampler must be a sampler configuration such as Uniform(), got {sampler!r}")
        if encoder is not None and (isinstance(encoder, type) or not isinstance(encoder, Encoder)):
            raise TypeError(f"encoder must be an encoder configuration such as RandomProjection(), got {encoder!r}")
        if values is not None and not isinstance(values, GraphValues):
            raise TypeError(f"values must be a GraphValues configuration or None, got {values!r}")
        if values is not None and n_step != 1:
            raise ValueError(f"values: GraphValues looks ahead along the whole graph and needs n_step=1, got {n_step}")
        if encoder is None:
            encoder = DiscreteKey() if is_discrete(observation_space) else RandomProjection()
        announce_first_compilation()

        self.observation_space = observation_space
        self.action_space = action_space
        self._gamma = float(gamma)
        self._seed = checked_seed(seed)
        self._sampler_config = sampler
        self._encoder_config = encoder
        self._values_config = values
        self._check_autoreset = check_autoreset
        self._cast = cast
        self._frame_stack = positive_int("frame_stack", frame_stack)
        self._file = None if file is None else Path(file)
        self._encoder = encoder.build(observation_space, named_generator(self._seed, "encoder"))
        self._lock = threading.RLock()
        guard(self)
        self._stale_updates = 0
        self._left_out = 0
        self._constants: dict[int, tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]] = {}
        self._make_parts(autoreset, named_generator(self._seed, "sampler"))

    def _make_parts(self, autoreset: Mode | None, generator: np.random.Generator) -> None:
        """Make all that holds transitions, empty."""
        path = None if self._file is None else self._file / f"{FILE_NAME}-{os.getpid()}-{id(self):x}"
        self._store = Store(
            self.observation_space,
            self.action_space,
            self._capacity,
            self._num_envs,
            self._frame_stack,
            path,
            self._cast,
        )
        self._autoreset = Autoreset(autoreset, self._check_autoreset, self._num_envs)
        values = self._values_config
        with_graph = self._sampler_config.needs_graph or values is not None
        self._graph: Graph | None = Graph(self._store, self._encoder) if with_graph else None
        self._planner = (
            None
            if values is None or self._graph is None
            else Planner(values, self._store, self._graph, self.action_space, self._gamma)
        )
        self._use_arrays()
        self._sampler = self._sampler_config.build(Experience(self._store, self._graph), generator)
        self._snapshot_memory = SnapshotMemory()

    @classmethod
    def for_env(cls, env: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for one environment, whose spaces it reads; `options` are those of `Replay`."""
        return cls(**{**options_of_env(env), "capacity": capacity, "sampler": sampler, **options})

    @classmethod
    def for_envs(cls, envs: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for a vector environment: spaces, number of lanes and autoreset mode are read from it.

        It knows vector environments of Gymnasium, EnvPool, PufferLib and Stable-Baselines3. `options` are those of
        `Replay` and win over what was read.
        """
        return cls(**{**options_of_envs(envs), "capacity": capacity, "sampler": sampler, **options})

    @property
    def machinery(self) -> ReplayMachinery:
        """The replay's parts, for those who move many replays with one kernel call; see `agent.fleet.compiled`."""
        return ReplayMachinery(
            self._store,
            self._graph,
            self._encoder,
            self._sampler,
            self._n_step,
            self._gamma,
            self._num_envs,
            self._planner,
        )

    def _why_not_after_a_fork(self) -> str | None:
        if self._store.in_file:
            return (
                "its observations lie in a file (file=...) that it shares with the process it was forked from. "
                "Save it there and load it here, or start the process by spawning"
            )
        return None

    # -- adding ---------------------------------------------------------------------------------------------------

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
        lanes: ArrayLike | None = None,
        successor_unknown: ArrayLike | None = None,
    ) -> Rows:
        """Add one transition per lane and return their row numbers, -1 for lanes that added nothing.

        Parameters
        ----------
        observation, action, reward, next_observation, terminated, truncated
            What `step` took and gave; arrays with a leading axis of lanes if ``num_envs > 1``. Only termination stops
            bootstrapping and makes a root of the graph; truncation ends the episode and nothing else.
        final_observation
            For vector environments in same-step autoreset mode, which return the next episode's first observation:
            ``infos.get("final_obs")``. Where a lane has ended, its entry is the true successor.
        mask
            Lanes with False add nothing.
        lanes
            Numbers of the lanes that the arrays are about, if those are not all of them in order. All the other
            arguments then have one entry for each lane that is named.
        successor_unknown
            Lanes with True ended in a state that was never observed; `next_observation` is not looked at. Terminations
            are kept, with a state of its own in the graph. Truncations are left out, for want of a state to bootstrap
            from, and counted in `stats`.
        """
        with self._lock:
            store, autoreset = self._store, self._autoreset
            chosen = None if lanes is None else checked_lanes(lanes, self._num_envs)
            store.staging.stage(observation, action, reward, next_observation, terminated, truncated, chosen)
            if mask is not None:
                store.staging.skip(~checked_mask(mask, self._num_envs, chosen))
            resets = autoreset.before(store, chosen)
            if resets is not None:
                store.staging.skip(resets)
            if final_observation is not None:
                stage_finals(store, final_observation, chosen)
            elif autoreset.mode == "same_step" and successor_unknown is None:
                require_finals(store)
            left_out = 0
            if successor_unknown is not None or autoreset.mode == "hidden":
                left_out = self._forget_successors(successor_unknown, chosen)
            first = store.total
            self._take_in()
            self._sampler.added(first, store.total)
            self._left_out += left_out
            if autoreset.follows_ends:
                autoreset.note_ends(store, chosen)
            rows = store.staging.row_numbers(first)
            return rows if chosen is None else rows[chosen]

    def _take_in(self) -> None:
        """Add what is staged to the store and to the graph."""
        store, first = self._store, self._store.total
        if store.in_file:
            store.make_room()
        if self._tables is not None and not store.staging.hides_successors:
            add_staged(*self._tables)
            return
        # An encoder of the user's own may fail, and must do so before anything has changed.
        foreign = self._graph is not None and not isinstance(self._encoder_config, BUILT_IN_ENCODERS)
        keys = self._graph.keys_of_staged() if foreign and self._graph is not None else None
        new = store.add()
        if self._graph is not None:
            self._graph.follow(first, new, keys)

    def _forget_successors(self, unknown: ArrayLike | None, lanes: NDArray[np.int64] | None) -> int:
        staging = self._store.staging
        if unknown is None:
            return staging.forget_successors(staging.ends())
        flags = as_flags(unknown, self._num_envs if lanes is None else len(lanes), "successor_unknown")
        return staging.forget_successors(flags if lanes is None else spread(flags, lanes, self._num_envs))

    def extend(
        self,
        observation: Any,
        action: ArrayLike,
        reward: ArrayLike,
        terminated: ArrayLike = False,
        truncated: ArrayLike = False,
        *,
        lane: int = 0,
    ) -> Rows:
        """Add a whole trajectory, or a stretch of one, to a lane and return its row numbers.

        Parameters
        ----------
        observation
            One more than there are actions: the last is where the last step led.
        action, reward
            One for each step.
        terminated, truncated
            How the last step ended: a bool, or one for each step, of which only the last may be True.
        lane
            The lane that the trajectory goes to. If it does not continue there, an episode begins.
        """
        if not 0 <= lane < self._num_envs:
            raise ValueError(f"lane must be from 0 to {self._num_envs - 1}, got {lane}")
        with self._lock:
            staging, first = self._store.staging, self._store.total
            trajectory = staging.trajectory(observation, action, reward, terminated, truncated)
            for step in range(len(trajectory)):
                staging.stage_step(lane, trajectory, step)
                self._take_in()
                self._sampler.added(first + step, first + step + 1)
            self._autoreset.note_trajectory(lane)
            return np.arange(first, first + len(trajectory))

    def clear(self) -> None:
        """Forget all transitions, and what the sampler knew of them; numbering and random streams go on."""
        with self._lock:
            total = self._store.total
            self._make_parts(self._autoreset.mode, self._sampler.generator)
            self._store.counters[[TOTAL, CLEARED]] = total

    # -- sampling -------------------------------------------------------------------------------------------------

    def sample(self, batch_size: int) -> Batch:
        """Return a batch of rows that the sampler chose.

        The arrays are yours for as long as you hold the batch or anything made of it.
        """
        batch_size = self._checked_size("batch_size", batch_size)
        with self._lock:
            self._refuse_if_empty()
            picks = self._sampler.pick(batch_size)
            return self._read(picks.row, picks.weight, picks.source)

    def pick(self, count: int) -> Picks:
        """Let the sampler choose rows as `sample` does, without reading them: for data that is kept elsewhere."""
        count = self._checked_size("count", count)
        with self._lock:
            self._refuse_if_empty()
            picks = self._sampler.pick(count)
            ones, zeros, _ = self._shared_constants(count)
            return Picks(
                picks.row,
                ones if picks.weight is None else picks.weight,
                zeros if picks.source is None else picks.source,
            )

    def _checked_size(self, name: str, size: int) -> int:
        size = positive_int(name, size)
        if size > self._capacity:
            raise ValueError(f"{name} must be at most the capacity of {self._capacity}, got {size}")
        return size

    def _refuse_if_empty(self) -> None:
        if not len(self._store):
            raise ValueError("cannot sample from an empty replay: add transitions first")

    def read(self, row: ArrayLike) -> Batch:
        """Return the given live rows as a batch, in that order, with weights of 1."""
        rows = checked_rows(row)
        with self._lock:
            live = self._store.are_live(rows)
            if not live.all():
                raise ValueError(
                    f"row must hold live serial numbers, {self._store.oldest} to {self._store.total - 1}, "
                    f"got {rows[~live][0]}"
                )
            return self._read(rows.copy(), None, None)

    def _read(self, row: Rows, weight: NDArray[np.float32] | None, source: NDArray[np.int64] | None) -> Batch:
        out = self._store.read(row, self._n_step, self._gamma)
        ones, zeros, single_steps = self._shared_constants(len(row))
        return Batch(
            out.observation,
            out.action,
            out.reward,
            out.next_observation,
            out.terminated,
            out.discount,
            ones if weight is None else weight,
            row,
            zeros if source is None else source,
            single_steps if self._n_step == 1 else self._store.folded_steps(row, self._n_step),
            None if self._planner is None else self._planner.targets(row),
        )

    def _shared_constants(self, size: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        constants = self._constants.get(size)
        if constants is None:
            constants = np.ones(size, np.float32), np.zeros(size, np.int64), np.ones(size, np.int64)
            for array in constants:
                array.flags.writeable = False
            self._constants = {size: constants}
        return constants

    def episode(self, row: int) -> Rows:
        """Return the live rows of the episode that `row` belongs to, in time order."""
        checked = int(checked_rows([row])[0])
        with self._lock:
            store = self._store
            if not store.oldest <= checked < store.total:
                raise ValueError(f"row must be live, {store.oldest} to {store.total - 1}, got {checked}")
            episode = store.rows[checked % self._capacity, EPISODE]
            out = np.empty(store.episodes[episode, LENGTH], np.int64)
            episode_rows(checked, store.rows, store.episodes, store.counters, out)
            return out

    def truncated(self, row: ArrayLike) -> NDArray[np.bool_]:
        """Say for each of the given live rows whether a time limit cut its episode off there."""
        rows = checked_rows(row)
        with self._lock:
            if not self._store.are_live(rows).all():
                raise ValueError(
                    f"row must hold live serial numbers, {self._store.oldest} to {self._store.total - 1}, got {rows}"
                )
            cut: NDArray[np.bool_] = (self._store.rows[rows % self._capacity, FLAGS] & TRUNCATED) != 0
            return cut

    def update_priorities(
        self, row: ArrayLike, td_error: ArrayLike | None = None, *, priority: ArrayLike | None = None
    ) -> None:
        """Tell the sampler the new errors of rows that it gave out.

        Rows that have been overwritten since are passed over and counted in `stats`. Samplers without priorities take
        no notice.

        Parameters
        ----------
        row
            ``batch.row``.
        td_error
            Signed or absolute TD errors, one for each row.
        priority
            Instead of `td_error`: what is to take the place of the absolute TD error; 0 or more.
        """
        if (td_error is None) == (priority is None):
            raise TypeError("update_priorities takes either td_error or priority")
        name, values = ("td_error", td_error) if priority is None else ("priority", priority)
        rows = checked_rows(row)
        assert values is not None
        errors = checked_errors(values, rows, name)
        with self._lock:
            store = self._store
            late = store_kernels.check_updates(rows, errors, store.oldest, store.total, priority is not None)
            if late < 0:
                refuse_update(rows, errors, name, store.total)
            if late > 0:
                self._stale_updates += late
                live = store.are_live(rows)
                rows, errors = rows[live], errors[live]
            if self._sampler.uses_priorities:
                self._sampler.update(rows, errors)

    # -- graph values ---------------------------------------------------------------------------------------------

    def renew_values(
        self,
        q_values: QValues,
        *,
        bounds: tuple[float, float] | None = None,
        batch_size: int = 1024,
        progress: Progress | None = None,
    ) -> Renewal:
        """Plan on the stored graph; from here on batches carry targets that follow from it.

        Call it about as often as you copy a target network. It costs what has changed since the last call, and a pass
        of the network over the states that it is asked about.

        Parameters
        ----------
        q_values
            A function from a batch of observations to an array or tensor (n, actions): the target network. It is asked
            only about states with actions that were never tried, or with none tried at all.
        bounds
            The lowest and the highest value that an episode can have, to which the network's values are clipped. None:
            learned from the rewards that were stored; `stats` shows them.
        batch_size
            Observations per call of `q_values`.
        progress
            Called with (observations done, observations in all) after each call of `q_values`.

        Returns
        -------
        Renewal
            How many states the network was asked about, how many state updates it took to solve, and how many states
            the next renewal has to continue with.
        """
        if self._planner is None:
            raise ValueError("renew_values needs a replay that plans: make it with values=GraphValues()")
        if not callable(q_values):
            raise TypeError(f"q_values must be a function of observations, got {type(q_values).__name__}")
        batch_size = positive_int("batch_size", batch_size)
        if bounds is not None:
            bounds = checked_bounds(bounds)
        with self._lock:
            return self._planner.renew(q_values, bounds, batch_size, progress)

    # -- looking --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._store)

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        return self._capacity

    @property
    def total(self) -> int:
        """How many transitions were ever added: the next row number."""
        return self._store.total

    @property
    def oldest(self) -> int:
        """The number of the oldest row that is still there; live rows are oldest to total - 1."""
        return self._store.oldest

    @property
    def num_envs(self) -> int:
        """How many lanes `add` takes."""
        return self._num_envs

    @property
    def n_step(self) -> int:
        """How many steps are folded into one at the most."""
        return self._n_step

    @property
    def gamma(self) -> float:
        """The discount."""
        return self._gamma

    @property
    def values(self) -> GraphValues | None:
        """The configuration of graph values, None without."""
        return self._values_config

    @property
    def sampler(self) -> Sampler:
        """The sampler's configuration."""
        return self._sampler_config

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        with self._lock:
            graph = 0 if self._graph is None else self._graph.nbytes
            planner = 0 if self._planner is None else self._planner.nbytes
            return self._store.nbytes + graph + planner + self._sampler.nbytes

    @property
    def graph(self) -> GraphView:
        """The predecessor graph of the live transitions, read-only.

        A sampler that does not need the graph does not pay for it: it is then built when first asked for, and kept up
        to date from there on.
        """
        with self._lock:
            if self._graph is None:
                graph = Graph(self._store, self._encoder)
                graph.build()
                self._graph = graph
                self._use_arrays()
            return GraphView(self._graph, lambda: self._lock, self._planner)

    def _use_arrays(self) -> None:
        """Take note that the graph or the encoder has other arrays than before."""
        self._tables = tables_for(self._store, self._graph, self._encoder)

    def _graph_for_loading(self) -> Graph:
        if self._graph is None:
            self._graph = Graph(self._store, self._encoder)
        return self._graph

    def stats(self) -> dict[str, float]:
        """Return counts of what is stored, of what the sampler did, and of what was passed over."""
        with self._lock:
            numbers: dict[str, float] = dict(self._store.statistics())
            if self._graph is not None:
                numbers.update(self._graph.statistics())
            if self._planner is not None:
                numbers.update(self._planner.statistics())
            numbers.update(self._sampler.statistics())
            numbers["late_priority_updates"] = self._stale_updates
            numbers["truncations_left_out"] = self._left_out
            return numbers

    def __repr__(self) -> str:
        return (
            f"Replay({len(self)} of {self._capacity} transitions, sampler={self._sampler_config}, "
            f"num_envs={self._num_envs})"
        )

    # -- saving ---------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything to `folder`; only what changed since the last save there is written.

        A crash at any moment leaves the old save or the new one. Adding and sampling wait meanwhile.
        """
        from backsweep.saving import save_replay

        with self._lock:
            save_replay(self, folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        sampler: Sampler | None = None,
        encoder: Encoder | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Replay:
        """Return the replay that was saved in `folder`; it goes on exactly where that one was.

        Parameters
        ----------
        folder
            Where `save` wrote.
        sampler, encoder
            Needed only if they were of classes of your own.
        file
            As for a new replay.
        """
        from backsweep.saving import load_replay

        return load_replay(folder, sampler=sampler, encoder=encoder, file=file)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the files of `save`, for frameworks that checkpoint by pickle."""
        from backsweep.saving import replay_from_files, replay_to_files

        with self._lock:
            return replay_from_files, replay_to_files(self)

    @classmethod
    def from_minari(cls, dataset: Any, **options: Any) -> Replay:
        """Return a replay that holds every transition of a Minari data set.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset`, or the id of one that is stored locally.
        options
            What `Replay` takes beside the spaces; by default the capacity is the data set's number of steps.
        """
        from backsweep.minari_data import replay_from_minari

        return replay_from_minari(dataset, **options)

    def add_minari(self, dataset: Any) -> Rows:
        """Add every transition of a Minari data set and return their row numbers; environments then go on as they were.

        Episodes are spread over the lanes. Those that do not fit push out the oldest rows, as always.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset` with the replay's spaces, or the id of one that is stored locally.
        """
        from backsweep.minari_data import add_minari

        return add_minari(self, dataset)

    def to_minari(self, dataset_id: str, **details: Any) -> Any:
        """Store the live transitions as a local Minari data set and return it.

        An episode without an end is stored with its last step marked as truncated.

        Parameters
        ----------
        dataset_id
            The new data set's id, such as "nchain/random-v0".
        details
            Passed on to `minari.create_dataset_from_buffers`: `env`, `author`, `description` and so on.
        """
        from backsweep.minari_data import replay_to_minari

        return replay_to_minari(self, dataset_id, **details)
