"""Renewing again and again: as if solved afresh, whatever came in between; threads; every kind of space."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Quantized, Replay, Topological
from backsweep.planning.model_kernels import CERTAIN, DIFFERING, KNOWN, PLANNED
from backsweep.saving import KIND, VERSION
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from small_worlds import ACTIONS, DISCOUNT, STATES, add, make, streams, values_of
from small_worlds import BOUNDS as SMALL_BOUNDS
from strategies import examples
from test_threads import in_threads
from twins.planning import PlainModel, Row, shown
from worlds import WORLDS

BOUNDS = (-5.0, 5.0)


def values_by_state(replay: Replay, observations: list[Any]) -> dict[int, float]:
    by_vertex = dict(zip(replay.graph.vertices.tolist(), replay.graph.values().tolist(), strict=True))
    found = ((state, replay.graph.vertex(observation)) for state, observation in enumerate(observations))
    return {state: by_vertex[vertex] for state, vertex in found if vertex is not None}


@pytest.mark.parametrize("chance", [0.0, 0.3], ids=["sure moves", "moves by chance"])
@pytest.mark.parametrize("untried", ["network", "never"])
def test_many_small_renewals_come_out_as_one(chance: float, untried: Any) -> None:
    """With the default tolerance, and a ring that is overwritten several times."""
    states, actions, discount, capacity = 150, 3, 0.95, 700
    random = np.random.default_rng(1)
    values = GraphValues(untried=untried, cautious=False, most_backups=1e4)
    spaces = gym.spaces.Discrete(states), gym.spaces.Discrete(actions)
    goes_to, pays = random.integers(states, size=(states, actions)), random.normal(size=(states, actions))
    network = random.normal(size=(states, actions))
    replay = Replay(*spaces, capacity, gamma=discount, values=values)
    live: list[Row] = []
    state = 0
    for step in range(3_000):
        action = int(random.integers(actions))
        after = int(random.integers(states) if random.random() < chance else goes_to[state, action])
        row = Row(state, action, float(pays[state, action]), after, bool(after < 5))
        replay.add(*row, False)
        live = [*live, row][-capacity:]
        state = int(random.integers(states)) if row.terminated else after
        if step % 50 == 49:
            network += random.normal(size=network.shape) * (step % 200 == 199)
            renewal = replay.renew_values(lambda asked, network=network: network[asked], bounds=BOUNDS)
            assert renewal.unsolved == 0
        if step % 500 == 499:
            expected = PlainModel(live, actions).solve(network, BOUNDS, discount, untried == "network")
            # No state is off by more than the tolerance in itself, and discounts add up to 1 / (1 - discount) of it.
            error = 4 * values.tolerance * (BOUNDS[1] - BOUNDS[0]) / (1 - discount)
            assert values_by_state(replay, list(range(states))) == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("low", [-1.0, -50.0], ids=["start too high", "start too low"])
def test_what_one_renewal_leaves_the_next_goes_on_with(low: float, tmp_path: Path) -> None:
    """Two closed rings that step into each other by chance, with no end in sight: only value iteration solves them."""
    states, discount = 40, 0.97
    space = gym.spaces.Discrete(states)
    replay = Replay(
        space,
        gym.spaces.Discrete(1),
        1_000,
        gamma=discount,
        values=GraphValues(gap=1.0, tolerance=1e-9, most_backups=1),
    )
    rows = [Row(s, 0, -1.0 if s % 3 else -0.2, (s + jump) % states, False) for s in range(states) for jump in (1, 7)]
    for row in rows:
        replay.add(*row, True)
    unsolved = []
    for _ in range(400):
        renewal = replay.renew_values(lambda asked: np.zeros((len(asked), 1)), bounds=(low, 0.0))
        assert np.isfinite(replay.read(np.arange(len(rows))).target).all()
        assert np.isfinite(replay.graph.values()).all()
        assert renewal.updates <= 4 * states
        unsolved.append(renewal.unsolved)
        if not renewal.unsolved:
            break
        if len(unsolved) == 1:  # a save in between changes nothing
            replay.save(tmp_path / "half")
            replay = Replay.load(tmp_path / "half")
    assert unsolved[0] > 0
    assert unsolved[-1] == 0
    expected = PlainModel(rows, 1).solve(np.zeros((states, 1)), (low, 0.0), discount)
    assert values_by_state(replay, list(range(states))) == pytest.approx(expected, abs=1e-5)


def test_a_state_that_was_out_of_use_forgets_what_it_was_worth() -> None:
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 3, gamma=0.5, values=GraphValues(gap=1.0))

    def renew(says: float) -> None:
        replay.renew_values(lambda states: np.full((len(states), 2), says), bounds=(-10.0, 10.0))

    replay.add(0, 0, 8.0, 1, True, False)  # state 0 is worth 8 ...
    replay.add(2, 0, 0.0, 0, True, False)
    replay.add(3, 0, 0.0, 0, True, False)
    renew(1.0)
    replay.add(4, 0, 0.0, 5, True, False)  # ... until that row leaves; episodes still end there
    renew(1.0)
    assert replay.graph.values()[list(replay.graph.vertices).index(replay.graph.vertex(0))] == 0.0
    replay.add(6, 0, 0.0, 0, False, True)  # and now one goes on from there
    renew(1.0)
    assert values_by_state(replay, list(range(9)))[0] == pytest.approx(1.0)
    assert replay.read([4]).target == pytest.approx(0.5)


def test_a_network_that_fails_leaves_targets_as_they_were() -> None:
    values = GraphValues(gap=1.0, cautious=False)
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 4, gamma=0.5, values=values)
    for state in range(3):
        replay.add(state, 0, 1.0, state + 1, state == 2, False)
    replay.renew_values(lambda states: np.zeros((len(states), 2)), bounds=(-10.0, 10.0))
    replay.add(4, 1, 3.0, 2, False, True)
    replay.add(5, 1, 3.0, 6, False, True)  # takes the place of the first row; where it leads nothing is known
    rows = np.arange(1, 5)
    before = replay.read(rows).target
    assert before[:3] == pytest.approx([1.5, 1.0, 3.5])
    assert np.isnan(before[3])

    def broken(states: Any) -> Any:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        replay.renew_values(broken)
    np.testing.assert_array_equal(replay.read(rows).target, before)
    assert np.isnan(replay.graph.action_values(replay.graph.vertex(4))).all()
    replay.renew_values(lambda states: np.full((len(states), 2), 2.0), bounds=(-10.0, 10.0))
    assert replay.read(rows).target == pytest.approx([1 + 0.5 * 2.0, 1.0, 4.0, 4.0])


@pytest.mark.kernels
@given(streams(), st.integers(3, 60), st.integers(0, 10_000))
@settings(max_examples=examples(30))
def test_a_refused_renewal_changes_no_target(rounds: list[list[tuple[Row, bool]]], capacity: int, seed: int) -> None:
    replay, disturbed = make(capacity), make(capacity)
    for some in rounds:
        for row, truncated in some:
            for each in (replay, disturbed):
                add(each, row, truncated)
        with pytest.raises(ValueError, match="q_values must return shape"):
            disturbed.renew_values(lambda states: np.zeros((len(states) + 1, 1)), batch_size=4)
        live = np.arange(replay.oldest, replay.total)
        np.testing.assert_array_equal(disturbed.read(live).target, replay.read(live).target)
        planner = disturbed.machinery.planner
        assert planner is not None
        np.testing.assert_array_equal(planner.targets(live), replay.read(live).target)
        newer = "rows_since_renewal"
        assert disturbed.stats()[newer] == replay.stats()[newer] >= len(some)
        network = np.random.default_rng(seed).normal(size=(STATES, ACTIONS)) * 4
        for each in (replay, disturbed):
            each.renew_values(lambda states, network=network: network[states], bounds=SMALL_BOUNDS)
            assert each.stats()[newer] == 0
        assert disturbed.read(live).target == pytest.approx(replay.read(live).target, abs=1e-4)


def test_a_save_of_an_earlier_release_has_values_for_the_rows_in_its_model(tmp_path: Path) -> None:
    """It did not count the rows of the last complete renewal apart from those that a failed one read."""
    replay = make()
    for state in range(5):
        add(replay, Row(state, 0, 1.0, state + 1, False))
    replay.renew_values(lambda states: np.zeros((len(states), ACTIONS)), bounds=SMALL_BOUNDS)
    add(replay, Row(0, 0, 3.0, 1, False))
    with pytest.raises(ValueError, match="q_values must return shape"):
        replay.renew_values(lambda states: np.zeros((len(states) + 1, 1)))
    replay.save(tmp_path / "new")
    saved = read_snapshot(tmp_path / "new", kind=KIND, versions={VERSION})
    assert saved.arrays["planner/counters"][PLANNED:].tolist() == [5, 6, 0]
    earlier = saved.arrays | {"planner/counters": saved.arrays["planner/counters"][:PLANNED]}
    write_snapshot(tmp_path / "old", earlier, saved.metadata, kind=KIND, version=VERSION)
    old, new = Replay.load(tmp_path / "old"), Replay.load(tmp_path / "new")
    np.testing.assert_array_equal(new.read(np.arange(6)).target, replay.read(np.arange(6)).target)
    assert [each.stats()["rows_since_renewal"] for each in (new, old)] == [1, 0]
    old.save(tmp_path / "old")  # over the save that is shorter
    np.testing.assert_array_equal(
        Replay.load(tmp_path / "old").read(np.arange(6)).target, old.read(np.arange(6)).target
    )
    assert old.read([5]).target == old.read([0]).target != new.read([5]).target


@pytest.mark.kernels
@given(streams(), st.lists(st.sampled_from(["", "explores", "fails"]), min_size=5, max_size=5), st.integers(0, 10_000))
@settings(max_examples=examples(30))
def test_values_are_shown_where_the_last_renewal_knew_the_state(
    rounds: list[list[tuple[Row, bool]]], between: list[str], seed: int
) -> None:
    """What exploring and failed renewals add to the model since has no value yet, ends neither."""
    replay, network = make(), np.random.default_rng(seed).normal(size=(STATES, ACTIONS))
    live: list[Row] = []
    followed: list[Row] = []
    then, solved = PlainModel([], ACTIONS), dict[int, float]()
    for some, what in zip(rounds, between, strict=False):
        for row, truncated in some:
            add(replay, row, truncated)
            live.append(row)
        if what == "explores":
            replay.explore(live[-1].successor, 0.5)
        elif what == "fails":
            with pytest.raises(ValueError, match="q_values must return shape"):
                replay.renew_values(lambda states: np.zeros((len(states) + 1, 1)))
        followed = list(live) if what else followed
        now = PlainModel(followed, ACTIONS)
        expected = shown(solved, then, now)
        newer = PlainModel(live, ACTIONS)
        expected |= dict.fromkeys((newer.states | newer.ends) - now.states - now.ends, math.nan)
        assert values_of(replay) == pytest.approx(expected, abs=1e-5, nan_ok=True)
        replay.renew_values(lambda states: network[states], bounds=SMALL_BOUNDS)
        followed, then = list(live), newer
        solved = then.solve(network, SMALL_BOUNDS, DISCOUNT)
        assert values_of(replay) == pytest.approx(solved, abs=1e-5)


def test_ends_that_are_newer_than_the_last_renewal_stay_unknown_through_a_save(tmp_path: Path) -> None:
    replay = make()
    add(replay, Row(0, 0, 1.0, 1, True))
    assert np.isnan(replay.graph.values()).all()
    replay.explore(0, 0.5)
    assert np.isnan(replay.graph.values()).all()  # before the first renewal nothing is known
    replay.renew_values(lambda states: np.zeros((len(states), ACTIONS)), bounds=SMALL_BOUNDS)
    assert values_of(replay) == {0: 1.0, 1: 0.0}
    add(replay, Row(0, 1, 0.5, 2, True))
    replay.explore(0, 0.5)
    replay.save(tmp_path / "new")
    saved = read_snapshot(tmp_path / "new", kind=KIND, versions={VERSION})
    earlier = saved.arrays | {"planner/counters": saved.arrays["planner/counters"][:KNOWN]}
    write_snapshot(tmp_path / "old", earlier, saved.metadata, kind=KIND, version=VERSION)
    for name, end in (("new", np.nan), ("old", 0.0)):  # an earlier release did not note what the renewal knew
        again = Replay.load(tmp_path / name)
        assert values_of(again) == pytest.approx({0: 1.0, 1: 0.0, 2: end}, nan_ok=True)
        again.renew_values(lambda states: np.zeros((len(states), ACTIONS)), bounds=SMALL_BOUNDS)
        assert values_of(again) == {0: 1.0, 1: 0.0, 2: 0.0}
    for place, wrong in ((KNOWN, -5), (KNOWN, 4), (DIFFERING, -5), (DIFFERING, CERTAIN + 1)):
        broken = saved.arrays["planner/counters"].copy()
        broken[place] = wrong
        write_snapshot(
            tmp_path / str(wrong),
            saved.arrays | {"planner/counters": broken},
            saved.metadata,
            kind=KIND,
            version=VERSION,
        )
        with pytest.raises(SnapshotError, match="what the last renewal knew is out of range"):
            Replay.load(tmp_path / str(wrong))


@pytest.mark.parametrize("world", ["uint8", "dict", "tuple", "multi discrete", "4 frames", "discrete from -5"])
@pytest.mark.parametrize("num_envs", [1, 4])
def test_every_kind_of_observation_and_several_lanes(world: str, num_envs: int) -> None:
    states, actions, discount = 12, 70, 0.8
    random = np.random.default_rng(4)
    look, observe = WORLDS[world], WORLDS[world].observe
    replay = Replay(
        look.space,
        gym.spaces.Discrete(actions, start=10),
        64,
        num_envs=num_envs,
        frame_stack=look.frame_stack,
        gamma=discount,
        values=GraphValues(gap=1.0, tolerance=1e-9),
    )
    network = random.normal(size=(states, actions))
    names = {flat(look.space, observe(state)): state for state in range(states)}
    live: list[Row] = []

    def q_values(observations: Any) -> Any:
        each = unstacked(observations)
        assert all(one in look.space for one in each)
        return network[[names[flat(look.space, one)] for one in each]]

    for call in range(60):
        rows = [
            Row(
                int(random.integers(states)),
                int(random.integers(actions)),
                float(random.normal()),
                int(random.integers(states)),
                bool(random.random() < 0.2),
            )
            for _ in range(num_envs)
        ]
        columns = [
            [observe(row.state) for row in rows],
            np.array([row.action + 10 for row in rows]),
            np.array([row.reward for row in rows]),
            [observe(row.successor) for row in rows],
            np.array([row.terminated for row in rows]),
            np.array([not row.terminated for row in rows]),
        ]
        replay.add(*([column[0] for column in columns] if num_envs == 1 else [stacked(column) for column in columns]))
        live = [*live, *rows][-64:]
        if call % 10 == 9:
            replay.renew_values(q_values, bounds=BOUNDS, batch_size=5)
            expected = PlainModel(live, actions).solve(network, BOUNDS, discount)
            assert values_by_state(replay, [observe(s) for s in range(states)]) == pytest.approx(expected, abs=1e-6)


def flat(space: gym.Space[Any], observation: Any) -> bytes:
    return bytes(gym.spaces.flatten(space, observation).tobytes())


def stacked(items: Any) -> Any:
    if isinstance(items[0], dict):
        return {key: stacked([item[key] for item in items]) for key in items[0]}
    if isinstance(items[0], tuple):
        return tuple(stacked(parts) for parts in zip(*items, strict=True))
    return np.stack(items)


def unstacked(batch: Any) -> list[Any]:
    if isinstance(batch, dict):
        parts = {key: unstacked(part) for key, part in batch.items()}
        return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]
    if isinstance(batch, tuple):
        return list(zip(*(unstacked(part) for part in batch), strict=True))
    return list(batch)


def test_progress_is_told_and_the_network_is_asked_in_batches() -> None:
    replay = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(2), 100, values=GraphValues())
    for state in range(24):
        replay.add(state, 0, 0.0, state + 1, False, False)
    reported: list[tuple[int, int]] = []
    sizes: list[int] = []

    def q_values(states: Any) -> Any:
        sizes.append(len(states))
        return np.zeros((len(states), 2))

    renewal = replay.renew_values(
        q_values, batch_size=10, progress=lambda done, all_of_them: reported.append((done, all_of_them))
    )
    assert sizes == [10, 10, 5]
    assert reported == [(10, 25), (20, 25), (25, 25)]
    assert renewal.asked == 25


def test_one_thread_adds_while_others_sample_and_renew() -> None:
    """Every row pays what its target is: a value that was half written, or that of another state, would show."""
    states = 60
    replay = Replay(
        gym.spaces.Box(0, states, (2,), np.float32),
        gym.spaces.Discrete(3),
        300,
        Topological(),
        encoder=Quantized(1.0),
        gamma=0.5,
        values=GraphValues(gap=1.0, tolerance=1e-9),
    )
    random = np.random.default_rng(2)
    done = {"adds": 0, "batches": 0, "renewals": 0}

    def look(state: int) -> Any:
        return np.full(2, state, np.float32)

    def add() -> None:
        state = done["adds"] % (states - 1)  # once round, then again from the start
        replay.add(look(state), int(random.integers(3)), 1.0, look(state + 1), state == states - 2, False)
        done["adds"] += 1

    def worth(state: Any) -> Any:
        return 2.0 * (1.0 - 0.5 ** (states - 1 - np.asarray(state, np.float64)))

    def sample() -> None:
        if not len(replay):
            return
        batch = replay.sample(32)
        assert batch.target is not None
        known = ~np.isnan(batch.target)
        np.testing.assert_allclose(batch.target[known], worth(batch.observation[known, 0]), atol=1e-5)
        done["batches"] += 1

    def renew() -> None:
        replay.renew_values(lambda seen: np.repeat(worth(seen[:, :1]), 3, axis=1), bounds=(0.0, 2.0))
        values = replay.graph.values()
        assert (np.isnan(values) | ((values >= 0) & (values <= 2))).all()
        done["renewals"] += 1

    for job in (add, sample, renew, sample):  # compiled before the threads meet
        job()
    in_threads(lambda: done["adds"] > 2_000 and done["batches"] > 200 and done["renewals"] > 50, add, sample, renew)
