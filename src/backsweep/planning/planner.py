"""The live state of graph values: the model, its solution and the targets of batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph import Graph
from backsweep.graph.graph_kernels import VERTICES_EVER
from backsweep.jit.array_table import address_table, addresses_of
from backsweep.jit.memory import WRITTEN_ALL_OVER, reserve
from backsweep.planning import (
    depth_kernels,
    exploration_kernels,
    follow_kernels,
    model_kernels,
    noise_kernels,
    solve_kernels,
    target_kernels,
)
from backsweep.planning.graph_values import GraphValues
from backsweep.planning.model_kernels import (
    ARCS_HIGH,
    BEST,
    CERTAIN,
    CHANGED_COUNT,
    DIFFERING,
    ENOUGH_TRIED,
    FIRST_ACTION,
    FIRST_INTO,
    FIRST_PAIR,
    KNOWN,
    LARGEST_REWARD,
    NOISY,
    PAIRS_HIGH,
    PAIRS_LIVE,
    PLANNED,
    RENEWALS,
    SMALLEST_REWARD,
    SYNCED,
    TURNS,
    VALUE,
    WORST,
    Experience,
    Model,
)
from backsweep.planning.noise_kernels import ENOUGH_ROWS, MOST_PAIRS
from backsweep.planning.planner_check import PlannerCheck
from backsweep.planning.queue_kernels import BUCKETS, QUEUE_COLUMNS, Queue
from backsweep.planning.solve_kernels import Span
from backsweep.planning.target_kernels import read_rows_and_targets
from backsweep.snapshot.contents import need
from backsweep.snapshot.saved_component import CheckStep, SavedComponent
from backsweep.store.layout import host_array
from backsweep.store.output import Output
from backsweep.store.store import Store, power_of_two_at_least
from backsweep.types import Rows, Vertex

QValues = Callable[[Any], Any]
Progress = Callable[[int, int], None]
FLOOR_SHARE = 0.15
"""The default floor, as a share of the distance between the bounds."""
SMALLEST_RANGE = 1e-6
"""The smallest distance between the bounds that is used, so that a tolerance is never 0."""


class Renewal(NamedTuple):
    """What one renewal did."""

    asked: int
    """States whose values came from the network."""
    updates: int
    """State updates that solving took."""
    unsolved: int
    """States that the next renewal continues with; 0 if all is solved to the tolerance."""


class Planner(SavedComponent):
    """The model of a replay's live rows and its values.

    Values are as of the last renewal. Renewals add newer rows to the model, and so does exploring.
    """

    def __init__(
        self, config: GraphValues, store: Store, graph: Graph, action_space: gym.Space[Any], gamma: float
    ) -> None:
        if not isinstance(action_space, gym.spaces.Discrete):
            raise TypeError(f"values: GraphValues needs a Discrete action space, got {action_space}")
        self.config = config
        self.discount = float(gamma if config.discount is None else config.discount)
        if not self.discount < 1:
            raise ValueError(f"values: GraphValues needs a discount below 1, got gamma={gamma}")
        self._gap = float(config.gap)
        self.num_actions = int(action_space.n)
        self._store, self._graph = store, graph
        capacity, most_vertices = store.capacity, 2 * store.capacity
        self.model = Model(
            vertices=reserve((most_vertices, model_kernels.VERTEX_COLUMNS), np.int32),
            tried=reserve((most_vertices,), np.uint64),
            numbers=reserve((most_vertices, model_kernels.NUMBER_COLUMNS), np.float64),
            stamps=reserve((most_vertices,), np.int64),
            pairs=reserve((capacity, model_kernels.PAIR_COLUMNS), np.int32),
            pair_numbers=reserve((capacity, model_kernels.PAIR_NUMBER_COLUMNS), np.float64),
            arcs=reserve((capacity, model_kernels.ARC_COLUMNS), np.int32),
            arc_table=reserve((power_of_two_at_least(2 * capacity),), np.uint64, WRITTEN_ALL_OVER),
            rows=reserve((capacity, model_kernels.MODEL_ROW_COLUMNS), np.int32),
            row_numbers=reserve((capacity, model_kernels.ROW_NUMBER_COLUMNS), np.float64),
            changed=reserve((most_vertices,), np.int32),
            extremes=np.array([math.inf, -math.inf, math.inf, -math.inf, math.inf]),
            bounds=np.zeros(2),
            counters=np.zeros(model_kernels.MODEL_COUNTERS, np.int64),
        )
        self.experience = Experience(
            rows=store.rows,
            values=store.values,
            actions=store.discrete_actions,
            vertices=graph.vertices,
            observation_vertex=graph.observation_vertex,
        )
        self.first_action = int(action_space.start)
        self.enough_tried = self._enough_tried()
        self.model.counters[FIRST_ACTION] = self.first_action
        self.model.counters[ENOUGH_TRIED] = self.enough_tried
        self.model.counters[TURNS] = 1 if config.depth is not None else round(1.0 / config.refresh)
        self.queue = Queue(
            links=reserve((most_vertices, QUEUE_COLUMNS), np.int32),
            heads=np.zeros(BUCKETS, np.int32),
            highest=np.full(1, -1, np.int64),
            waiting=reserve((most_vertices,), np.int32),
        )
        self._model_at, self._experience_at = addresses_of(self.model), addresses_of(self.experience)
        self._queue_at = addresses_of(self.queue)
        self._table, self._outputs = address_table([*store.bundles, self.model, self.experience]), store.outputs
        self._asked = reserve((most_vertices,), np.int32)
        self._asked_observations = reserve((most_vertices,), np.int32)
        self.bounds = self.model.bounds
        """The lowest and the highest value, as of the last renewal."""
        self.floor = self._floor_between(self.bounds)
        """The largest distance of a target below the best action."""
        self._span = Span(self.bounds, self._limits_around(self.bounds))
        self._span_at = addresses_of(self._span)
        # What a renewal found that has begun; if the network fails, nothing changes.
        self._found_noisy, self._found_differing, self._known = False, 0, 0

    def _enough_tried(self) -> int:
        """Return the number of tried actions from which on a state needs no value from the network."""
        if self.config.depth is not None:
            return self.num_actions + 1
        return self.num_actions if self.config.untried == "network" else 1

    # -- renewing -------------------------------------------------------------------------------------------------

    def renew(
        self, q_values: QValues, bounds: tuple[float, float] | None, batch_size: int, progress: Progress | None
    ) -> Renewal:
        """Add the rows since the last renewal, evaluate states with the network where needed, and solve."""
        vertices, observations = self.begin_renewal()
        asked = self._ask(q_values, observations, batch_size, progress)
        return self.finish_renewal(vertices, asked, bounds)

    def begin_renewal(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Add new rows; return the vertices that need the network's values, and an observation number of each."""
        store, counters = self._store, self.model.counters
        planned = int(counters[PLANNED])
        follow_kernels.follow_at(store.oldest, store.total, self._experience_at, self._model_at)
        counters[PLANNED] = planned  # until the renewal is complete: if it fails, targets are as before
        self._known = int(self._graph.counters[VERTICES_EVER])
        limit = self.config.noise_limit
        if limit is not None:
            differing, noise = noise_kernels.measure_noise(self.model, ENOUGH_ROWS, MOST_PAIRS)
            self._found_noisy, self._found_differing = noise > limit, round(differing * CERTAIN)
        if self._found_noisy:
            return self._asked[:0], self._asked_observations[:0]
        count = target_kernels.list_vertices_to_ask(
            self._graph.vertices_high,
            store.observations_high,
            store.observation_uses,
            self.experience,
            self.model,
            self._asked,
            self._asked_observations,
        )
        return self._asked[:count], self._asked_observations[:count]

    def finish_renewal(
        self, vertices: NDArray[np.int32], values: NDArray[np.floating], bounds: tuple[float, float] | None
    ) -> Renewal:
        """Store the network's values (n, actions) of the vertices that `begin_renewal` returned, and solve."""
        self.bounds[:] = self.learned_bounds() if bounds is None else bounds
        self.floor = self._floor_between(self.bounds)
        self._move_limits()
        self.model.counters[NOISY], self.model.counters[DIFFERING] = self._found_noisy, self._found_differing
        if self.is_noisy:
            self._note_renewal()
            return Renewal(0, 0, int(self.model.counters[CHANGED_COUNT]))
        tolerance = self.config.tolerance * max(float(self.bounds[1] - self.bounds[0]), SMALLEST_RANGE)
        cautious = bool(self.config.cautious) and self.config.depth is None
        target_kernels.take_network_values(vertices, values, self.bounds, tolerance, cautious, self.model)
        if self.config.depth is not None:
            depth_kernels.start_from_network(vertices, values, self.bounds, self.model)
            updates = depth_kernels.look_ahead(int(self.config.depth), self.discount, vertices, self.model)
            self._note_renewal()
            return Renewal(len(vertices), int(updates), 0)
        most = int(self.config.most_backups * max(self._graph.vertices_high, 1))
        places = self._span_at, self._model_at, self._queue_at
        updates = solve_kernels.solve_at(self.discount, tolerance, most, *places)
        self._note_renewal()
        return Renewal(len(vertices), int(updates), int(self.model.counters[CHANGED_COUNT]))

    def _note_renewal(self) -> None:
        """Count a renewal that is complete: the rows in the model now have its values."""
        self.model.counters[RENEWALS] += 1
        self.model.counters[KNOWN] = self._known
        self.model.counters[PLANNED] = self.model.counters[SYNCED]

    @property
    def is_noisy(self) -> bool:
        """Whether the last renewal found more noise than planning allows, so that there are no values."""
        return bool(self.model.counters[NOISY])

    def learned_bounds(self) -> tuple[float, float]:
        """Return the lowest and highest value to expect from the stored rewards.

        Each is the nearer to 0 of two bounds: the extreme reward sum over any part of an episode, and the extreme
        reward received forever. They include 0, the value of an end without reward. Overwritten rows still count.
        """
        extremes, ever = self.model.extremes, 1.0 / (1.0 - self.discount)
        if not math.isfinite(extremes[BEST]):
            return 0.0, 0.0
        high = max(0.0, min(float(extremes[BEST]), float(extremes[LARGEST_REWARD]) * ever))
        low = min(0.0, max(float(extremes[WORST]), float(extremes[SMALLEST_REWARD]) * ever))
        return low, high

    def _ask(
        self, q_values: QValues, observations: NDArray[np.int32], batch_size: int, progress: Progress | None
    ) -> NDArray[np.float64]:
        values = np.empty((len(observations), self.num_actions))
        for first in range(0, len(observations), batch_size):
            numbers = observations[first : first + batch_size].astype(np.int64)
            layout = self._store.layout
            batch = layout.as_given(layout.views(self._store.observation_words(numbers)))
            values[first : first + len(numbers)] = self._checked(q_values(batch), len(numbers))
            if progress is not None:
                progress(first + len(numbers), len(observations))
        return values

    def _checked(self, answer: Any, count: int) -> NDArray[Any]:
        array = host_array(answer, "what q_values returned")
        if array.dtype.kind not in "fiu":
            raise TypeError(f"q_values must return numbers, got dtype {array.dtype}")
        if array.shape != (count, self.num_actions):
            raise ValueError(
                f"q_values must return shape {(count, self.num_actions)} for {count} observations and "
                f"{self.num_actions} actions, got {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"q_values must return finite values, got {array[~np.isfinite(array)][0]}")
        return array

    # -- reading --------------------------------------------------------------------------------------------------

    def _floor_between(self, bounds: NDArray[np.float64]) -> float:
        """Return the configured floor, or the default one for these bounds."""
        if self.config.floor is not None:
            return float(self.config.floor)
        if self.config.gap == 1:
            return math.inf
        return FLOOR_SHARE * float(bounds[1] - bounds[0])

    def _limits_around(self, bounds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the lowest and the highest V for these bounds."""
        margin = self.config.margin
        if margin is None:
            return np.array([-math.inf, math.inf])
        beyond = margin * (bounds[1] - bounds[0])
        return np.array([bounds[0] - beyond, bounds[1] + beyond])

    def _move_limits(self) -> None:
        """Compute the limits for new bounds, and mark the states whose values may change with them."""
        old, new = self._span.limits, self._limits_around(self.bounds)
        if self.config.depth is None and (old != new).any():
            solve_kernels.mark_clipped(old, new, self._graph.vertices_high, self.model)
        self._span.limits[:] = new

    def read(self, row: Rows, gamma: float) -> Output:
        """Gather live rows with their finished targets, NaN where there is none yet, into unused output arrays."""
        out = self._outputs.take(len(row))
        read_rows_and_targets(row, gamma, self._gap, self.floor, self.discount, self._table, out.addresses)
        return out

    def targets(self, row: Rows) -> NDArray[np.float32]:
        """Return the finished target of each live row, NaN where there is none yet."""
        out = np.empty(len(row), np.float32)
        target_kernels.read_targets(row, self._gap, self.floor, self.discount, self.experience, self.model, out)
        return out

    def tried_values(self, row: Rows) -> NDArray[np.float32]:
        """Return Q of the tried actions of each live row's state, (rows, actions), NaN where there is none yet."""
        out = np.empty((len(row), self.num_actions), np.float32)
        target_kernels.read_tried_values(row, self.experience, self.model, out)
        return out

    def explore(self, observation: Any, unit: float) -> int:
        """Return an action to explore after an observation, chosen by a number in [0, 1)."""
        store, found = self._store, self._store.find_observation(observation)
        number = -1 if found is None else found
        action = exploration_kernels.follow_and_explore(
            unit, number, self.num_actions, store.oldest, store.total, self._experience_at, self._model_at
        )
        return self.first_action + int(action)

    def values(self, vertices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return V of live vertices, NaN for those that are newer than the last renewal and where it is too noisy."""
        if self.is_noisy:
            return np.full(len(vertices), np.nan)
        stamps = self._graph.stamps(vertices)
        in_model = self.model.stamps[vertices] == stamps + 1
        values: NDArray[np.float64] = np.where(in_model, self.model.numbers[vertices, VALUE], np.nan)
        only_ends = (self.model.vertices[vertices][:, [FIRST_PAIR, FIRST_INTO]] == 0).all(axis=1)
        # Episodes terminate there and nowhere else. Exploring and failed renewals add newer ones to the model, too.
        values[in_model & only_ends & (stamps < self.model.counters[KNOWN])] = 0.0
        return values

    def action_values(self, vertex: Vertex) -> NDArray[np.float64]:
        """Return Q of each action of a live vertex, NaN for actions never tried there."""
        out = np.full(self.num_actions, np.nan)
        if not np.isnan(self.values(np.array([vertex]))[0]):
            target_kernels.read_action_values(vertex, self.model, out)
        return out

    def statistics(self) -> dict[str, float]:
        """Count what the model holds."""
        counters = self.model.counters
        return {
            "tried_actions": int(counters[PAIRS_LIVE]),
            "value_renewals": int(counters[RENEWALS]),
            "rows_since_renewal": self._store.total - int(counters[PLANNED]),
            "lowest_value": float(self.bounds[0]),
            "highest_value": float(self.bounds[1]),
            "noise": float(noise_kernels.measure_noise(self.model, ENOUGH_ROWS, MOST_PAIRS)[1]),
            "too_noisy": int(self.is_noisy),
        }

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.model.arc_table.nbytes + sum(array.nbytes for array in self.arrays().values())

    # -- saving ---------------------------------------------------------------------------------------------------

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        """Return every array that a save must hold, with the length of its used part."""
        model, counters = self.model, self.model.counters
        rows = min(int(counters[SYNCED]), self._store.capacity)
        vertices, pairs, arcs = self._graph.vertices_high, int(counters[PAIRS_HIGH]), int(counters[ARCS_HIGH])
        return {
            "counters": (counters, len(counters)),
            "extremes": (model.extremes, len(model.extremes)),
            "bounds": (self.bounds, 2),
            "vertices": (model.vertices, vertices),
            "tried": (model.tried, vertices),
            "numbers": (model.numbers, vertices),
            "stamps": (model.stamps, vertices),
            "pairs": (model.pairs, pairs),
            "pair_numbers": (model.pair_numbers, pairs),
            "arcs": (model.arcs, arcs),
            "rows": (model.rows, rows),
            "row_numbers": (model.row_numbers, rows),
            "changed": (model.changed, int(counters[CHANGED_COUNT])),
        }

    def destinations(self) -> dict[str, NDArray[Any]]:
        """Return the whole arrays that a save is read into."""
        self.model.counters[PLANNED:] = -1  # stay so if the save is of an earlier release, which did not have them
        return super().destinations()

    def checks(self) -> tuple[CheckStep, ...]:
        """Return the steps of the check of loaded arrays."""
        return PlannerCheck(self, self._store, self._graph).steps()

    def build_tables(self) -> None:
        """Build the hash table of arcs."""
        need(model_kernels.rebuild_arc_table(self.model), "too many of its arcs are the same")

    def finish_loading(self) -> None:
        """Compute from the loaded bounds what depends on them."""
        counters = self.model.counters
        counters[PLANNED] = counters[SYNCED] if counters[PLANNED] < 0 else counters[PLANNED]
        counters[KNOWN] = self._graph.counters[VERTICES_EVER] if counters[KNOWN] < 0 else counters[KNOWN]
        counters[DIFFERING] = max(0, counters[DIFFERING])
        self.floor = self._floor_between(self.bounds)
        self._span.limits[:] = self._limits_around(self.bounds)
