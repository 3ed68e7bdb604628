"""Test suites for samplers and encoders.

Subclass one in a test file and name the class under test; pytest finds the rest:

    class TestNewest(SamplerContract):
        def make_sampler(self):
            return Newest()

The docstring of a failing test says what is required.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep.encoding.base import Encoder, LiveEncoder
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.samplers.base import Sampler
from backsweep.trees import leaves, map_tree
from backsweep.types import Batch

__all__ = ["EncoderContract", "SamplerContract"]

STATES = 12


class SamplerContract:
    """The tests that every sampler must pass. Override `make_sampler`, and `make_encoder` if it needs a special one."""

    def make_sampler(self) -> Sampler:
        """Return the configuration under test."""
        raise TypeError(f"{type(self).__name__} must define make_sampler")

    def make_encoder(self) -> Encoder | None:
        """Return the encoder to test with; None for the default."""
        return None

    def make_replay(
        self, capacity: int = 30, num_envs: int = 1, seed: int = 0, values: GraphValues | None = None
    ) -> Replay:
        """Return an empty replay with the sampler under test."""
        return Replay(
            gym.spaces.Discrete(STATES),
            gym.spaces.Discrete(3),
            capacity,
            self.make_sampler(),
            encoder=self.make_encoder(),
            values=values,
            num_envs=num_envs,
            seed=seed,
        )

    def steps(self, calls: int, num_envs: int = 1, seed: int = 0, ends: bool = True) -> Iterator[tuple[Any, ...]]:
        """Yield arguments of `add`: random walks with self-loops, cycles, terminations and truncations."""
        rng = np.random.default_rng(seed)
        place = rng.integers(STATES, size=num_envs)
        for _ in range(calls):
            target = np.where(rng.random(num_envs) < 0.1, place, rng.integers(STATES, size=num_envs))
            terminated = ends & (rng.random(num_envs) < 0.15)
            truncated = ends & (rng.random(num_envs) < 0.05)
            action, reward = rng.integers(3, size=num_envs), rng.normal(size=num_envs)
            arguments = (place, action, reward, target, terminated, truncated)
            yield tuple(argument[0] for argument in arguments) if num_envs == 1 else arguments
            place = np.where(terminated | truncated, rng.integers(STATES, size=num_envs), target)

    def check(self, replay: Replay, batch: Batch, size: int) -> None:
        """Check the size, types and weights of a batch, and that its rows are live."""
        oldest = replay.stats()["rows_ever_added"] - len(replay)
        assert len(batch) == size, f"asked for {size} rows, got {len(batch)}"
        assert batch.row.shape == batch.weight.shape == batch.source.shape == (size,)
        assert batch.row.dtype == np.int64, "Picks.row must be int64"
        assert batch.weight.dtype == np.float32, "Picks.weight must be float32"
        assert batch.source.dtype == np.int64, "Picks.source must be int64"
        assert ((batch.row >= oldest) & (batch.row < oldest + len(replay))).all(), "a row is not live"
        assert (np.isfinite(batch.weight) & (batch.weight >= 0)).all(), "weights must be finite and 0 or more"
        assert (batch.source >= 0).all()

    def check_same(self, first: Replay, second: Replay, step: tuple[Any, ...]) -> None:
        """Add a step to both, and require the same batch from both."""
        batches = []
        for replay in (first, second):
            replay.add(*step)
            batch = replay.sample(6)
            replay.update_priorities(batch.row, batch.reward)
            batches.append(batch)
        for name in ("row", "weight", "source"):
            found, expected = (getattr(batch, name) for batch in batches)
            assert np.array_equal(found, expected), f"two replays that should be alike differ in {name}"

    def test_it_is_a_configuration(self) -> None:
        """A sampler given to Replay is a configuration: equal arguments give equal, hashable objects."""
        assert isinstance(self.make_sampler(), Sampler)
        assert not isinstance(self.make_sampler(), type)
        assert isinstance(self.make_sampler().needs_graph, bool)
        assert self.make_sampler() == self.make_sampler(), "use a frozen dataclass"
        assert hash(self.make_sampler()) == hash(self.make_sampler()), "use a frozen dataclass"

    def test_rows_are_live_at_every_moment(self) -> None:
        """`pick` returns the requested number of live rows, from the first row on and after many wraps of the ring."""
        for num_envs in (1, 4):
            replay = self.make_replay(num_envs=num_envs)
            for call, step in enumerate(self.steps(200, num_envs)):
                replay.add(*step)
                size = 1 + call % 30
                self.check(replay, replay.sample(size), size)

    def test_rows_are_served_before_any_episode_has_ended(self) -> None:
        """A sampler that cannot choose rows yet has a fallback."""
        replay = self.make_replay()
        for step in self.steps(50, ends=False):
            replay.add(*step)
            self.check(replay, replay.sample(7), 7)

    def test_one_row_is_enough(self) -> None:
        """A batch may be larger than the number of live rows, and a replay may hold a single one."""
        replay = self.make_replay(capacity=1)
        replay.add(1, 0, 1.0, 2, True, False)
        for _ in range(5):
            self.check(replay, replay.sample(1), 1)
        replay = self.make_replay(capacity=10)
        replay.add(1, 0, 1.0, 2, True, False)
        assert set(replay.sample(10).row.tolist()) == {0}

    def test_the_same_seed_gives_the_same_rows(self) -> None:
        """All randomness comes from the generator that `build` was given."""
        replays = [self.make_replay(seed=3) for _ in range(2)]
        for step in self.steps(100):
            self.check_same(replays[0], replays[1], step)

    def test_global_generators_are_left_alone(self) -> None:
        """Neither numpy's nor Python's global generator is used or seeded."""
        before = json.dumps([random.getstate(), [str(word) for word in np.random.get_state()]])  # noqa: NPY002
        replay = self.make_replay()
        for step in self.steps(50):
            replay.add(*step)
            batch = replay.sample(5)
            replay.update_priorities(batch.row, batch.reward)
        after = json.dumps([random.getstate(), [str(word) for word in np.random.get_state()]])  # noqa: NPY002
        assert before == after

    def test_one_configuration_serves_two_replays(self) -> None:
        """The live state belongs to the replay: two replays with one configuration are independent."""
        sampler = self.make_sampler()
        spaces = gym.spaces.Discrete(STATES), gym.spaces.Discrete(3)
        alone = self.make_replay(seed=1)
        shared, other = (Replay(*spaces, 30, sampler, encoder=self.make_encoder(), seed=seed) for seed in (1, 2))
        for step, noise in zip(self.steps(80), self.steps(80, seed=5), strict=True):
            other.add(*noise)
            batch = other.sample(11)
            other.update_priorities(batch.row, 100 + batch.reward)
            self.check_same(alone, shared, step)

    def test_batches_stay_as_they_were_handed_out(self) -> None:
        """Arrays of earlier picks are not written to again."""
        replay = self.make_replay()
        held = []
        for step in self.steps(60):
            replay.add(*step)
            batch = replay.sample(5)
            held.append((batch, batch.row.copy(), batch.weight.copy(), batch.source.copy()))
        for batch, row, weight, source in held:
            assert np.array_equal(batch.row, row)
            assert np.array_equal(batch.weight, weight)
            assert np.array_equal(batch.source, source)

    def test_updates_of_any_live_rows_are_taken(self) -> None:
        """TD errors may come in any order, repeat a row, refer to overwritten rows, and be huge, zero or negative."""
        replay = self.make_replay()
        for call, step in enumerate(self.steps(120)):
            replay.add(*step)
            batch = replay.sample(8)
            rows = np.concatenate([batch.row, batch.row[:2], [max(call - 40, 0)]])
            replay.update_priorities(rows, np.linspace(-1e6, 1e6, len(rows)) * (call % 3))
            self.check(replay, replay.sample(8), 8)

    def test_a_saved_sampler_goes_on_as_if_never_saved(self, tmp_path: Path) -> None:
        """`state` holds everything that the next picks depend on, as arrays and plain JSON."""
        replay = self.make_replay()
        steps = list(self.steps(130))
        for step in steps[:70]:
            replay.add(*step)
            batch = replay.sample(7)
            replay.update_priorities(batch.row, batch.reward)
        replay.save(tmp_path)
        loaded = Replay.load(tmp_path, sampler=self.make_sampler(), encoder=self.make_encoder())
        for step in steps[70:]:
            self.check_same(replay, loaded, step)

    def test_graph_values_go_with_it(self) -> None:
        """With graph values, a batch holds the targets of its rows, in their order."""
        replay = self.make_replay(values=GraphValues())
        for call, step in enumerate(self.steps(120)):
            replay.add(*step)
            if call % 20 == 10:
                replay.renew_values(lambda states: np.zeros((len(states), 3)))
            batch = replay.sample(8)
            self.check(replay, batch, 8)
            again = replay.read(batch.row)
            assert batch.target is not None
            assert again.target is not None
            assert np.array_equal(batch.target, again.target, equal_nan=True)

    def test_numbers_about_it_are_numbers(self) -> None:
        """`statistics` are finite floats and `nbytes` counts bytes."""
        replay = self.make_replay()
        for step in self.steps(40):
            replay.add(*step)
            replay.sample(4)
        assert all(np.isfinite(value) for value in replay.stats().values())
        assert replay.nbytes > 0


class EncoderContract:
    """The tests that every encoder must pass. Override `make_encoder`, and `make_space` if it is not for any space."""

    def make_encoder(self) -> Encoder:
        """Return the configuration under test."""
        raise TypeError(f"{type(self).__name__} must define make_encoder")

    def make_space(self) -> gym.Space[Any]:
        """Return an observation space that the encoder is for."""
        return gym.spaces.Box(0, 255, (4, 6), np.uint8)

    def build(self, seed: int = 0) -> LiveEncoder:
        """Return a live encoder."""
        return self.make_encoder().build(self.make_space(), np.random.default_rng(seed))

    def observations(self, count: int = 20) -> list[Any]:
        """Return random observations, one of them twice."""
        space = self.make_space()
        space.seed(1)
        items = [space.sample() for _ in range(count - 1)]
        return [*items, items[0]]

    def stacked(self, items: list[Any]) -> Any:
        """Return observations as one batch."""
        return map_tree(lambda *leaf: np.stack([np.asarray(item) for item in leaf]), *items)

    def test_it_is_a_configuration(self) -> None:
        """An encoder given to Replay is a configuration: equal arguments give equal objects."""
        assert isinstance(self.make_encoder(), Encoder)
        assert self.make_encoder() == self.make_encoder(), "use a frozen dataclass"

    def test_keys_have_the_shape_that_is_promised(self) -> None:
        """One key of `words` 64-bit words for each observation, for one observation and for many."""
        live = self.build()
        for count in (2, 7, 20):
            keys = live.encode(self.stacked(self.observations(count)))
            assert keys.shape == (count, live.words)
            assert keys.dtype == np.int64

    def test_equal_observations_have_equal_keys_whatever_is_around_them(self) -> None:
        """A key depends only on the observation: not on the batch, its order, or its layout in memory."""
        live = self.build()
        items = self.observations()
        keys = live.encode(self.stacked(items))
        assert np.array_equal(keys[0], keys[-1]), "the same observation twice in a batch"
        for i, item in enumerate(items):
            assert np.array_equal(live.encode(self.stacked([item]))[0], keys[i]), "alone and in a batch"
        order = np.random.default_rng(0).permutation(len(items))
        assert np.array_equal(live.encode(self.stacked([items[i] for i in order])), keys[order]), "in another order"
        twice = map_tree(lambda leaf: leaf[::2], self.stacked([item for item in items for _ in range(2)]))
        assert np.array_equal(live.encode(twice), keys), "from memory that is not contiguous"
        assert np.array_equal(live.encode(self.stacked(items)), keys), "a second time"

    def test_observations_are_not_written_to(self) -> None:
        """Encoding does not change observations."""
        batch = self.stacked(self.observations())
        for leaf in leaves(batch):
            leaf.flags.writeable = False
        self.build().encode(batch)

    def test_what_is_random_comes_from_the_generator_and_is_saved(self) -> None:
        """The same generator gives the same keys, and so does another one after `load`."""
        batch = self.stacked(self.observations())
        first, again, other = self.build(0), self.build(0), self.build(1)
        keys = first.encode(batch)
        assert np.array_equal(again.encode(batch), keys)
        other.load({name: array.copy() for name, array in first.arrays().items()})
        assert np.array_equal(other.encode(batch), keys), "arrays and load must restore everything drawn at random"

    def test_a_replay_finds_its_vertices_by_it(self, tmp_path: Path) -> None:
        """Every stored observation has a vertex, and the same one after saving and loading."""
        replay = Replay(self.make_space(), gym.spaces.Discrete(2), 50, encoder=self.make_encoder())
        items = self.observations()
        for before, after in itertools.pairwise(items):
            replay.add(before, 0, 0.0, after, False, False)
        vertices = [replay.graph.vertex(item) for item in items]
        assert None not in vertices
        assert vertices[0] == vertices[-1]
        replay.save(tmp_path)
        loaded = Replay.load(tmp_path, encoder=self.make_encoder())
        assert [loaded.graph.vertex(item) for item in items] == vertices
