"""What is random in a sweep follows its law: roots, predecessors, and the transition on an edge."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from backsweep import PseudoTerminals, Terminals, Topological
from backsweep.sweep.choice_kernels import draw_better_terminals, draw_pseudo_terminals
from laws import assert_law
from twins.replay import Twin
from twins.store import Step

DRAWS = 20_000


def replay_of(sampler: Topological, steps: list[tuple[int, int]]) -> Twin:
    """A replay of one-step episodes, all terminating, from one state to another."""
    twin = Twin(sampler=sampler, capacity=len(steps), seed=3)
    for source, target in steps:
        twin.add([Step(source, 0, 0.0, target, True, False)])
    return twin


def test_roots_are_terminals_drawn_without_replacement() -> None:
    # Five terminals with one predecessor each: a sweep from three roots is three rows, in the roots' order.
    twin = replay_of(Topological(roots=3), [(10 + k, k) for k in range(5)])
    drawn = [tuple(twin.replay.sample(3).row.tolist()) for _ in range(DRAWS)]
    assert_law(drawn, dict.fromkeys(itertools.permutations(range(5), 3), 1 / 60))


def test_all_terminals_are_roots_if_there_are_no_more_than_wanted() -> None:
    twin = replay_of(Topological(roots=8), [(10 + k, k) for k in range(3)])
    drawn = [tuple(twin.replay.sample(3).row.tolist()) for _ in range(DRAWS // 4)]
    assert_law(drawn, dict.fromkeys(itertools.permutations(range(3)), 1 / 6))


def test_predecessors_are_drawn_without_replacement() -> None:
    twin = replay_of(Topological(roots=1, predecessors=3), [(10 + k, 0) for k in range(6)])
    drawn = [tuple(twin.replay.sample(3).row.tolist()) for _ in range(DRAWS)]
    assert_law(drawn, dict.fromkeys(itertools.permutations(range(6), 3), 1 / 120))


def test_all_predecessors_are_followed_if_there_are_no_more_than_wanted() -> None:
    for predecessors in (None, 6, 7):
        twin = replay_of(Topological(roots=1, predecessors=predecessors), [(10 + k, 0) for k in range(6)])
        for _ in range(20):
            assert sorted(twin.replay.sample(6).row.tolist()) == list(range(6))


def test_predecessors_by_visits_follow_the_law_of_drawing_one_after_another() -> None:
    weights = [1, 2, 3, 5]
    steps = [(10 + k, 0) for k, weight in enumerate(weights) for _ in range(weight)]
    edge_of = [k for k, weight in enumerate(weights) for _ in range(weight)]
    twin = replay_of(Topological(roots=1, predecessors=2, draw="visits"), steps)
    drawn = [tuple(edge_of[row] for row in twin.replay.sample(2).row.tolist()) for _ in range(DRAWS)]
    total = sum(weights)
    law = {
        (i, j): weights[i] / total * weights[j] / (total - weights[i])
        for i, j in itertools.permutations(range(len(weights)), 2)
    }
    assert_law(drawn, law)


def test_uniform_predecessors_do_not_look_at_visits() -> None:
    weights = [1, 2, 3, 5]
    steps = [(10 + k, 0) for k, weight in enumerate(weights) for _ in range(weight)]
    edge_of = [k for k, weight in enumerate(weights) for _ in range(weight)]
    twin = replay_of(Topological(roots=1, predecessors=1), steps)
    drawn = [edge_of[int(twin.replay.sample(1).row[0])] for _ in range(DRAWS)]
    assert_law(drawn, dict.fromkeys(range(4), 1 / 4))


def test_the_transition_on_an_edge_is_drawn_uniformly() -> None:
    twin = replay_of(Topological(roots=1), [(1, 0)] * 7)
    for _ in range(4):  # the ring goes on, so that the edge's block wraps around
        twin.add([Step(1, 0, 0.0, 0, True, False)])
    drawn = [int(twin.replay.sample(1).row[0]) for _ in range(DRAWS)]
    assert_law(drawn, dict.fromkeys(range(4, 11), 1 / 7))


@pytest.mark.parametrize(
    ("rewards", "kappa"),
    [
        ([0.0, 0.5, 1.0, 1.5], 0.7),
        ([2.0, 2.0, 2.0, -5.0], 0.01),  # ties share the whole
        ([1e6, 1e6 - 1, 1e6 - 3, 0.0], 1.0),  # far beyond what exp could take
        ([-1e6, -1e6, -1e6 - 2, -2e6], 1.0),
    ],
)
def test_pseudo_terminals_follow_the_softmax_of_the_average_accumulated_reward(
    rewards: list[float], kappa: float
) -> None:
    # State 9 is where all episodes start: its accumulated reward is 0.
    twin = Twin(sampler=Topological(start=PseudoTerminals(kappa)), capacity=10)
    for state, reward in enumerate(rewards):
        twin.add([Step(9, 0, reward, state, False, True)])
    graph = twin.replay._graph
    assert graph is not None
    roots = np.zeros(DRAWS, np.int64)
    count = draw_pseudo_terminals(np.array([77], np.uint64), kappa, graph.bundle, roots)
    assert count == DRAWS
    state_of = {twin.replay.graph.vertex(state): state for state in (*range(len(rewards)), 9)}
    averages = dict(enumerate(rewards)) | {9: 0.0}
    largest = max(averages.values())
    weights = {state: math.exp((value - largest) / kappa) for state, value in averages.items()}
    chances = {state: weight / sum(weights.values()) for state, weight in weights.items()}
    law = {state: chance for state, chance in chances.items() if chance > 1e-3}
    drawn = [state_of[root] for root in roots.tolist()]
    assert_law([s for s in drawn if s in law], {s: chance / sum(law.values()) for s, chance in law.items()})
    assert sum(s not in law for s in drawn) < 0.005 * DRAWS


def test_roots_are_the_better_of_their_candidates() -> None:
    # Nineteen of twenty ends are failures, at different costs. With 64 candidates nearly every draw has a success
    # among them (1 - 0.95**64 = 0.96), and all successes are drawn alike.
    twin = Twin(sampler=Topological(start=Terminals(candidates=64)), capacity=200)
    for state in range(100):
        reward = 10.0 - 0.01 * state if state % 20 == 0 else -10.0 - 0.01 * state
        twin.add([Step(120, 0, reward, state, True, False)])
    graph = twin.replay._graph
    assert graph is not None
    roots = np.zeros(DRAWS, np.int64)
    assert draw_better_terminals(np.array([5], np.uint64), 64, graph.bundle, roots) == DRAWS
    state_of = {twin.replay.graph.vertex(state): state for state in range(100)}
    drawn = [state_of[root] for root in roots.tolist()]
    successes = [state for state in drawn if state % 20 == 0]
    assert abs(len(successes) / DRAWS - (1 - 0.95**64)) < 0.01
    assert_law(successes, dict.fromkeys(range(0, 100, 20), 0.2))


def test_equal_ends_are_drawn_uniformly_however_many_candidates() -> None:
    twin = Twin(sampler=Topological(start=Terminals(candidates=16)), capacity=20)
    for state in range(4):
        twin.add([Step(9, 0, 1.0, state, True, False)])
    graph = twin.replay._graph
    assert graph is not None
    roots = np.zeros(DRAWS, np.int64)
    draw_better_terminals(np.array([5], np.uint64), 16, graph.bundle, roots)
    state_of = {twin.replay.graph.vertex(state): state for state in range(4)}
    assert_law([state_of[root] for root in roots.tolist()], dict.fromkeys(range(4), 0.25))


def test_a_visit_in_the_middle_counts_towards_the_average() -> None:
    twin = Twin(sampler=Topological(start=PseudoTerminals()), capacity=10)
    twin.add([Step(1, 0, 1.0, 2, False, False)])
    twin.add([Step(2, 0, 5.0, 3, False, False)])
    twin.add([Step(3, 0, 3.0, 2, True, False)])
    view = twin.replay.graph
    two = view.vertex(2)
    assert two is not None
    assert view.visits(two) == 2
    assert view.average_accumulated_reward(two) == (1 + 9) / 2
