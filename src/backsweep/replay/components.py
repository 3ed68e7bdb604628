"""The components of a replay, and its properties."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import DiscreteKey, Encoder, ExactBytes, Quantized, RandomProjection
from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.discrete import is_discrete
from backsweep.graph.graph import Graph, GraphView
from backsweep.jit.compilation import announce_first_compilation, entry_point
from backsweep.jit.forks import guard
from backsweep.jit.random_streams import checked_seed, named_generator
from backsweep.planning import GraphValues
from backsweep.planning.planner import Planner
from backsweep.replay.argument_checks import LARGEST_INT, checked_gamma, checked_path, checked_sampler, positive_int
from backsweep.replay.autoreset import (
    CHECKS,
    MODES,
    Autoreset,
    Check,
    Mode,
)
from backsweep.samplers import Experience, Sampler
from backsweep.samplers.base import LiveSampler, graph_draws
from backsweep.snapshot import SnapshotMemory
from backsweep.snapshot.contents import need
from backsweep.snapshot.saved_component import SavedComponent
from backsweep.store.argument_form_kernels import TAKES_ENDS
from backsweep.store.ingest import tables_for
from backsweep.store.ingest_kernels import add_arguments
from backsweep.store.layout import Layout
from backsweep.store.output import CAN_COUNT
from backsweep.store.staging import LARGEST_REWARD
from backsweep.store.store import Store

FILE_NAME = "backsweep-observations"
BUILT_IN_ENCODERS = (DiscreteKey, ExactBytes, Quantized, RandomProjection)


@dataclass(frozen=True)
class ReplayMachinery:
    """The components of a replay."""

    store: Store
    graph: Graph | None
    encoder: LiveEncoder
    sampler: LiveSampler
    n_step: int
    gamma: float
    num_envs: int
    planner: Planner | None


class ReplayComponents:
    """The components of a `Replay`, whose parameters these are."""

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
        self._n_step = positive_int("n_step", n_step, LARGEST_INT)
        self._gamma = checked_gamma(gamma)
        if autoreset is not None and not (isinstance(autoreset, str) and autoreset in MODES):
            raise ValueError(f"autoreset must be None or one of {', '.join(map(repr, MODES))}, got {autoreset!r}")
        if not isinstance(check_autoreset, str) or check_autoreset not in CHECKS:
            raise ValueError(f"check_autoreset must be one of {', '.join(map(repr, CHECKS))}, got {check_autoreset!r}")
        if not isinstance(cast, bool):
            raise TypeError(f"cast must be True or False, got {cast!r}")
        sampler = checked_sampler(sampler)
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
        self._seed = checked_seed(seed)
        self._sampler_config = sampler
        self._encoder_config = encoder
        self._values_config = values
        self._check_autoreset = check_autoreset
        self._cast = cast
        self._frame_stack = positive_int("frame_stack", frame_stack)
        self._file = None if file is None else checked_path("file", file)
        Layout(observation_space, "observation", check_box_bounds=False)  # refuses a space that cannot be stored
        self._encoder = encoder.build(observation_space, named_generator(self._seed, "encoder"))
        self._lock = threading.RLock()
        self._stale_updates = 0
        self._left_out = 0
        self._constants: dict[int, tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]] = {}
        self._make_components(autoreset, named_generator(self._seed, "sampler"))
        guard(self)  # when it is complete: another thread may fork at any time

    def _make_components(self, autoreset: Mode | None, generator: np.random.Generator) -> None:
        """Make the empty store, graph, planner and sampler."""
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
        self._store.staging.largest_reward = LARGEST_REWARD / self._n_step
        self._autoreset = Autoreset(autoreset, self._check_autoreset, self._num_envs)
        values = self._values_config
        with_graph = self._sampler_config.needs_graph or values is not None
        draws = graph_draws(self._sampler_config)
        self._graph: Graph | None = Graph(self._store, self._encoder, draws) if with_graph else None
        self._planner = (
            None
            if values is None or self._graph is None
            else Planner(values, self._store, self._graph, self.action_space, self._gamma)
        )
        self._use_arrays()
        self._sampler = self._sampler_config.build(Experience(self._store, self._graph, self._planner), generator)
        self._listeners = self._sampler.listeners()
        self.snapshot_memory = SnapshotMemory()

    @property
    def machinery(self) -> ReplayMachinery:
        """The replay's components, for stepping many replays with one kernel call; see `agent.fleet.compiled`."""
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
                "its observations are in a file (file=...) that it shares with the process it was forked from. "
                "Save it there and load it here, or start the process by spawning"
            )
        return None

    def __len__(self) -> int:
        return len(self._store)

    @property
    def capacity(self) -> int:
        """The largest number of transitions."""
        return self._capacity

    @property
    def total(self) -> int:
        """The number of transitions ever added, which is the next row number."""
        return self._store.total

    @property
    def oldest(self) -> int:
        """The number of the oldest live row; live rows are oldest to total - 1."""
        return self._store.oldest

    @property
    def num_envs(self) -> int:
        """The number of lanes."""
        return self._num_envs

    @property
    def n_step(self) -> int:
        """The largest number of steps in a transition."""
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

        If the sampler does not need the graph, it is built on first access and updated from then on.
        """
        with self._lock:
            if self._graph is None:
                graph = Graph(self._store, self._encoder)
                graph.build()
                self._graph = graph
                self._use_arrays()
            return GraphView(self._graph, lambda: self._lock, self._planner)

    def _use_arrays(self) -> None:
        """Called when the graph or the encoder has new arrays."""
        self._tables = tables_for(self._store, self._graph, self._encoder)
        self._staging, self._counters = self._store.staging, self._store.counters.data
        self._rows = np.empty(self._num_envs, np.int64)
        """What the last `add` returned, or the next one will if nobody holds it then."""
        self._references_unheld = sys.getrefcount(self._rows) if CAN_COUNT else 0
        forms = self._staging.forms
        self._add_table: int | None = None
        """What `add_arguments` takes, the address of a table; None if it cannot be used."""
        self._add_kernel: Callable[[int, int], int] | None = entry_point(add_arguments, 2)
        """`add_arguments`, called directly; None until it is compiled."""
        if self._tables is not None and forms is not None and not self._store.in_file:
            forms[0].numbers[TAKES_ENDS] = self._autoreset.takes_ends
            self._add_table = id(self._tables[1])

    # -- what a save holds, for `backsweep.saving` --------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make an empty replay like this one."""
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "capacity": self._capacity,
            "sampler": self._sampler_config,
            "encoder": self._encoder_config,
            "values": self._values_config,
            "num_envs": self._num_envs,
            "n_step": self._n_step,
            "gamma": self._gamma,
            "frame_stack": self._frame_stack,
            "autoreset": self._autoreset.mode,
            "check_autoreset": self._check_autoreset,
            "cast": self._cast,
            "file": self._file,
            "seed": self._seed,
        }

    def saved_components(self, with_graph: bool) -> dict[str, SavedComponent]:
        """Return the components that a save is read into, each after those that it builds on."""
        if with_graph and self._graph is None:
            self._graph = Graph(self._store, self._encoder)
        components: dict[str, SavedComponent | None] = {
            "store": self._store,
            "graph": self._graph,
            "planner": self._planner,
        }
        return {name: component for name, component in components.items() if component is not None}

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
        """Return what the components do not hold: which lanes have ended, and the counts of skipped rows."""
        counts = {"late_priority_updates": self._stale_updates, "truncations_left_out": self._left_out}
        return {"ended": self._autoreset.ended}, counts

    def load_state(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; the components and the encoder have been loaded."""
        ended = arrays["ended"]
        late, left_out = values["late_priority_updates"], values.get("truncations_left_out", 0)
        need(
            ended.dtype == np.bool_ and ended.shape == self._autoreset.ended.shape,
            "the lanes that have ended do not fit",
        )
        need(type(late) is int and late >= 0, "the number of late updates is out of range")
        need(type(left_out) is int and left_out >= 0, "the number of truncations left out is out of range")
        self._autoreset.resume_from(ended)
        self._stale_updates, self._left_out = late, left_out
        self._use_arrays()

    def stats(self) -> dict[str, float]:
        """Return statistics of the store, graph, planner and sampler, and counts of skipped rows."""
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
