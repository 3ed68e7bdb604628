"""A replay and its plain-Python twin, driven with the same calls and compared in everything that can be seen."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import Replay
from backsweep.encoding import Encoder, LiveEncoder
from backsweep.graph.graph_kernels import ENDINGS, ROW_EDGE, SOURCE, TARGET, USES, GraphArrays, find_edge_into
from backsweep.jit.array_table import unpack
from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams import named_generator
from backsweep.samplers import Sampler
from backsweep.store.ring_kernels import EPISODE, FIRST, HAS_TERMINATED, HAS_TRUNCATED, LAST, NEXT, RUNNING, STATE
from backsweep.store.staging import UNSEEN_WORD
from backsweep.sweep.sweep_kernels import EDGES_AT_ONCE, LONG_QUEUE
from backsweep.types import Batch
from twins.graph import ReferenceGraph, graph_of
from twins.samplers import ReferenceTopological, reference_of
from twins.store import BROKEN_OFF, TERMINATED, TRUNCATED, ReferenceStore, Step, Unseen
from twins.store import RUNNING as STILL_RUNNING
from worlds import ACTIONS, WORLDS, World, assert_same_data, stacked

EPISODE_STATES = {RUNNING: STILL_RUNNING, HAS_TERMINATED: TERMINATED, HAS_TRUNCATED: TRUNCATED, 3: BROKEN_OFF}


@kernel
def edge_between(source: int, target: int, graph_at: np.ndarray) -> int:
    return find_edge_into(source, target, unpack(GraphArrays, graph_at))


@dataclass(frozen=True)
class BadEncoder:
    """Gives states with the same remainder the same key: as many collisions as one likes."""

    states: int

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveEncoder:
        return LiveBadEncoder(self.states)


class LiveBadEncoder(LiveEncoder):
    words = 1

    def __init__(self, states: int) -> None:
        self._states = states

    def encode(self, observations: Any) -> np.ndarray:
        return np.asarray(observations, np.int64).reshape(-1, 1) % self._states


class Twin:
    """A replay, its twin, and the calls that both understand."""

    def __init__(
        self,
        *,
        sampler: Sampler,
        capacity: int,
        num_envs: int = 1,
        world: World = WORLDS["discrete"],
        actions: World = ACTIONS["discrete"],
        encoder: Encoder | None = None,
        n_step: int = 1,
        gamma: float = 0.9,
        seed: int = 0,
    ) -> None:
        self.world, self.actions, self.encoder, self.sampler = world, actions, encoder, sampler
        self.replay = Replay(
            world.space,
            actions.space,
            capacity,
            sampler,
            encoder=encoder,
            num_envs=num_envs,
            n_step=n_step,
            gamma=gamma,
            frame_stack=world.frame_stack,
            seed=seed,
            check_autoreset="off",  # a walk on two states may well end where the next one starts
        )
        self.n_step, self.gamma = n_step, gamma
        self.store = ReferenceStore(capacity, num_envs)
        self.graph = ReferenceGraph(self.store, self._key)
        self.reference = reference_of(sampler, self.store, self.graph, named_generator(seed, "sampler"))
        self.late = 0
        self.seen: set[Any] = set()
        self.with_graph = sampler.needs_graph

    def _key(self, observation: Hashable) -> Hashable:
        if isinstance(observation, Unseen):
            return Unseen(self._key(observation.after))
        assert isinstance(observation, int)
        return observation % self.encoder.states if isinstance(self.encoder, BadEncoder) else observation

    # -- calls ----------------------------------------------------------------------------------------------------

    def add(self, steps: Sequence[Step | None]) -> None:
        """Add a step per lane; None leaves the lane out."""
        filler = next((step for step in steps if step is not None), Step(0, 0, 0.0, 0, False, False))
        full = [filler if step is None else step for step in steps]
        arguments: list[Any] = [
            [self.world.observe(step.observation) for step in full],  # type: ignore[arg-type]
            [self.actions.observe(step.action) for step in full],
            [step.reward for step in full],
            [
                # Anything may be given for a successor that nobody has seen.
                self.world.observe(0 if isinstance(step.next_observation, Unseen) else step.next_observation)  # type: ignore[arg-type]
                for step in full
            ],
            [step.terminated for step in full],
            [step.truncated for step in full],
        ]
        if len(steps) == 1:
            arguments = [argument[0] for argument in arguments]
        else:
            arguments = [stacked(argument) for argument in arguments]
        mask = None if None not in steps else np.array([step is not None for step in steps])
        unseen = np.array([isinstance(step.next_observation, Unseen) for step in full])
        numbers = self.replay.add(*arguments, mask=mask, successor_unknown=unseen if unseen.any() else None)
        changes = self.store.add(steps)
        self.graph.follow(changes)
        assert numbers[numbers >= 0].tolist() == [row.serial for _, row in changes]
        assert (numbers >= 0).tolist() == [step is not None for step in steps]
        for _, row in changes:
            self.reference.added(row.serial)
            self.seen |= {row.step.observation, row.step.next_observation}

    def bound_sweep(self, edges_at_once: int, long_queue: int) -> None:
        """Let a sweep meet its bounds in small graphs."""
        if isinstance(self.reference, ReferenceTopological):
            settings = self.replay._sampler.sweep.settings  # type: ignore[attr-defined]
            settings[EDGES_AT_ONCE], settings[LONG_QUEUE] = edges_at_once, long_queue
            self.reference.sweep.edges_at_once, self.reference.sweep.long_queue = edges_at_once, long_queue

    def sample(self, count: int) -> Batch | None:
        """Draw a batch from both and demand the same; an empty replay or a declared error must refuse in both."""
        if not len(self.store):
            return None
        try:
            picks = self.reference.pick(count)
        except RuntimeError:
            try:
                self.replay.sample(count)
            except RuntimeError:
                return None
            raise AssertionError("the twin has nothing to serve and the replay does") from None
        batch = self.replay.sample(count)
        assert batch.row.tolist() == [row for row, _, _ in picks]
        assert batch.weight.tolist() == [weight for _, weight, _ in picks]
        assert batch.source.tolist() == [source for _, _, source in picks]
        self.check_batch(batch)
        return batch

    def update(self, rows: Sequence[int], errors: Sequence[float]) -> None:
        """Report TD errors for rows, some of which may be gone."""
        self.replay.update_priorities(np.asarray(rows, np.int64), np.asarray(errors, np.float64))
        for row, error in zip(rows, errors, strict=True):
            if row in self.store.rows:
                self.reference.update(row, abs(error))
            else:
                self.late += 1

    def reload(self, folder: Path) -> None:
        """Save the replay and go on with what comes back."""
        self.replay.save(folder)
        self.replay = Replay.load(folder, encoder=self.encoder)

    # -- comparing ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare everything that can be seen."""
        self.check_store()
        self.check_graph()
        if len(self.store):
            self.check_batch(self.replay.read(sorted(self.store.rows)))

    def check_batch(self, batch: Batch) -> None:
        """Compare the contents of a batch, n steps folded."""
        folded = [self.store.fold(row, self.n_step, self.gamma) for row in batch.row.tolist()]
        for name, observe in (("observation", self.world), ("action", self.actions), ("next_observation", self.world)):
            expected = stacked([observe.observe(getattr(item, name)) for item in folded])
            found = getattr(batch, name)
            space = observe.space
            assert_same_data(found, _as_space(space, expected), name)
        assert batch.reward.tolist() == [float(np.float32(item.reward)) for item in folded]
        assert batch.discount.tolist() == [float(np.float32(item.discount)) for item in folded]
        assert batch.terminated.tolist() == [item.terminated for item in folded]
        assert batch.steps.tolist() == [item.steps for item in folded]

    def check_store(self) -> None:
        """Compare rows, episodes in their order, and what is kept of observations."""
        twin, store, replay = self.store, self.replay._store, self.replay
        assert len(replay) == len(twin)
        assert (store.total, store.oldest) == (twin.total, twin.oldest)
        stats = replay.stats()
        observations = twin.observations()
        assert stats["rows"] == len(twin)
        assert stats["rows_ever_added"] == twin.total
        assert stats["distinct_observations"] == len(observations)
        assert stats["episodes"] == len(twin.live_episodes)
        assert stats["episodes_broken_off"] == twin.broken_off
        assert stats["late_priority_updates"] == self.late
        frames = {
            frame.tobytes()
            for state in observations
            for frame in (self._frames(state) if self.world.frame_stack > 1 else ())
        }
        assert stats["distinct_frames"] == (len(frames) if self.world.frame_stack > 1 else len(observations))
        for state in self.observed():
            assert (store.find_observation(self.world.observe(state)) is not None) == (state in observations)
        for place, episode in enumerate(twin.live_episodes):
            number = store.live_episodes[place]
            assert EPISODE_STATES[int(store.episodes[number, STATE])] == episode.state
            serials = [row.serial for row in episode.rows]
            assert replay.episode(serials[0]).tolist() == serials
            slots = [serial % twin.capacity for serial in serials]
            assert store.episodes[number, [FIRST, LAST]].tolist() == [slots[0], slots[-1]]
            assert [int(store.rows[slot, NEXT]) for slot in slots] == [*slots[1:], -1]
            assert {int(store.rows[slot, EPISODE]) for slot in slots} == {int(number)}

    def hidden_vertices(self) -> dict[Hashable, int]:
        """Return the vertices of ends that nobody saw, by key; no observation leads to them."""
        graph = self.replay._graph
        assert graph is not None
        found: dict[Hashable, int] = {}
        for row in self.store.rows.values():
            if isinstance(row.step.next_observation, Unseen):
                edge = graph.graph_rows[row.serial % self.store.capacity, ROW_EDGE]
                found[self._key(row.step.next_observation)] = int(graph.edges[edge, TARGET])
        return found

    def observed(self) -> list[int]:
        """Return the states that were ever observed."""
        return [state for state in self.seen if not isinstance(state, Unseen)]

    def _frames(self, state: Any) -> Any:
        if not isinstance(state, Unseen):
            return np.asarray(self.world.observe(state))
        words = self._frames(state.after).reshape(self.world.frame_stack, -1).view(np.uint64)
        return words ^ UNSEEN_WORD

    def check_graph(self) -> None:
        """Compare the graph with both twins: the one kept step by step, in order, and the one made from nothing."""
        twin = self.graph
        plain = graph_of(self.store.rows.values(), self._key)
        assert plain.vertices == set(twin.vertices)
        assert plain.edges == {pair: {row.serial for row in edge.rows} for pair, edge in twin.edges.items()}
        assert plain.terminals == {vertex.key for vertex in twin.terminals}
        assert plain.visits == {key: vertex.visits for key, vertex in twin.vertices.items()}
        for key, vertex in twin.vertices.items():
            expected = plain.average_accumulated_reward[key]
            assert math.isclose(vertex.average_accumulated_reward, expected, rel_tol=1e-9, abs_tol=1e-9)
        if not self.with_graph:
            return
        graph, view = self.replay._graph, self.replay.graph
        assert graph is not None
        stats = self.replay.stats()
        assert (view.num_vertices, view.num_edges) == (len(twin.vertices), len(twin.edges))
        assert stats["terminal_vertices"] == len(twin.terminals)
        assert stats["key_collisions"] == twin.collisions
        number: dict[Hashable, int] = {}
        number.update(self.hidden_vertices())
        for state in self.observed():
            vertex_number = view.vertex(self.world.observe(state))
            assert (vertex_number is not None) == (self._key(state) in twin.vertices)
            if vertex_number is not None:
                assert number.setdefault(self._key(state), vertex_number) == vertex_number
        assert view.vertices.tolist() == [number[vertex.key] for vertex in twin.in_order()]
        assert view.terminal_vertices.tolist() == [number[vertex.key] for vertex in twin.terminals]
        for key, vertex in twin.vertices.items():
            place = number[key]
            assert view.visits(place) == vertex.visits
            assert view.average_accumulated_reward(place) == vertex.average_accumulated_reward
            assert graph.vertices[place, USES] == vertex.uses
            assert graph.vertices[place, ENDINGS] == vertex.endings
            edges = graph.edges_into(place)
            assert view.predecessors(place).tolist() == [number[edge.source.key] for edge in vertex.edges_in]
            for edge_number, edge in zip(edges.tolist(), vertex.edges_in, strict=True):
                source, target = graph.edges[edge_number, [SOURCE, TARGET]].tolist()
                assert (source, target) == (number[edge.source.key], place)
                assert graph.rows_on(edge_number).tolist() == [row.serial for row in edge.rows]
            for other in twin.vertices:
                found = edge_between(number[other], place, graph.addresses)
                assert (found >= 0) == ((other, key) in twin.edges)
        listed = sum(len(vertex.edges_in) for vertex in twin.vertices.values() if len(vertex.edges_in) > 1)
        assert np.count_nonzero(graph._edge_table) == listed
        assert np.count_nonzero(graph._vertex_table) == len(twin.vertices)


def _as_space(space: gym.Space[Any], value: Any) -> Any:
    """Give every array the dtype of its space: Python ints become the space's integers."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _as_space(part, value[key]) for key, part in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_as_space(part, item) for part, item in zip(space.spaces, value, strict=True))
    return np.asarray(value).astype(space.dtype)
