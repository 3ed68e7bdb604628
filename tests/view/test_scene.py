"""What a page shows is what the replay holds, and making it leaves the replay as it was."""

from __future__ import annotations

import numpy as np
import pytest
from view_replays import planned_replay, played, small_replay

from backsweep import Replay
from backsweep.view.facts import read_facts
from backsweep.view.scene import FLAG_REACHES_END, FLAG_START, FLAG_TERMINAL, NONE, Scene, make_scene
from states import assert_same_state, state_of


def state_at(replay: Replay, scene: Scene, observation: int) -> int:
    """Return the number of a state on the page."""
    vertex = replay.graph.vertex(observation)
    return int(np.flatnonzero(scene.arrays["vertex"] == vertex)[0])


def test_a_small_graph_is_shown_as_it_is() -> None:
    replay = planned_replay()
    scene = make_scene(replay, title="small")
    arrays, names = scene.arrays, (0, 1, 2, 3, 5, 7, 8)
    place = {name: state_at(replay, scene, name) for name in names}
    assert len(arrays["vertex"]) == 7
    at = [place[name] for name in names]
    assert arrays["distance"][at].tolist() == [3, 2, 1, 0, 3, -1, -1]
    assert arrays["visits"][at].tolist() == [replay.graph.visits(replay.graph.vertex(name)) for name in names]
    assert arrays["numbers"][at, 0].tolist() == list(names)
    assert arrays["age"][at].tolist() == [9, 5, 4, 4, 6, 0, 0]
    # Values with a discount of a half: 1 at state 2, the mean of 0.5 and 1.5 and half of that at state 1.
    np.testing.assert_allclose(arrays["value"][at], [0.75, 1.5, 1.0, 0.0, 0.75, 0.0, 0.0], atol=1e-5)
    reaches = FLAG_REACHES_END
    flags = [FLAG_START + reaches, reaches, reaches, FLAG_TERMINAL + reaches, FLAG_START + reaches, FLAG_START, 0]
    assert arrays["flags"][at].tolist() == flags
    edges = {tuple(edge) for edge in arrays["edge"].tolist()}
    expected = [(0, 1), (1, 2), (2, 3), (5, 1), (7, 8), (8, 7)]
    assert edges == {(place[source], place[target]) for source, target in expected}
    assert scene.words["edges"] == scene.words["shownEdges"] == 6
    assert scene.words["ends"] == 1


def test_actions_of_a_state_are_counted() -> None:
    replay = planned_replay()
    scene = make_scene(replay, title="small")
    arrays = scene.arrays

    def pairs(observation: int) -> list[tuple[int, int, float, int, float]]:
        state = state_at(replay, scene, observation)
        first, last = arrays["pair_first"][state : state + 2].tolist()
        names = ("pair_action", "pair_times", "pair_reward", "pair_target", "pair_value")
        return [tuple(arrays[name][place].item() for name in names) for place in range(first, last)]

    # Actions are counted from 0 here, whatever their space starts with.
    assert pairs(1) == [(1, 2, 1.0, state_at(replay, scene, 2), pytest.approx(1.5, abs=1e-5))]
    assert pairs(3) == []
    assert [pair[:4] for pair in pairs(7)] == [
        (0, 2, 0.0, state_at(replay, scene, 8)),
        (1, 1, 0.0, state_at(replay, scene, 7)),
    ]


def test_without_values_they_are_not_numbers() -> None:
    scene = make_scene(small_replay(), title="small")
    assert not scene.words["planned"]
    assert np.isnan(scene.arrays["value"]).all()
    assert np.isnan(scene.arrays["pair_value"]).all()


def test_a_replay_stays_as_it_is() -> None:
    replay = played("nchain-10", 300)
    replay.sample(16)
    before = state_of(replay)
    make_scene(replay, title="chain")
    assert_same_state(state_of(replay), before)


def test_the_next_batch_is_the_one_it_would_have_been() -> None:
    replay, twin = played("nchain-10", 300), played("nchain-10", 300)
    make_scene(replay, title="chain")
    for _ in range(3):
        assert replay.sample(32).row.tolist() == twin.sample(32).row.tolist()


def test_draws_are_the_samplers() -> None:
    replay = played("nchain-10", 300)
    scene = make_scene(replay, title="chain")
    draws, ends = scene.arrays["draws"], scene.arrays["flags"] & FLAG_TERMINAL
    assert draws.sum() >= 4 * 300
    assert (draws[ends == 0] > 0).all()
    assert (draws[ends > 0] == 0).all()


def test_sweeps_begin_at_ends_and_go_backwards() -> None:
    replay = played("nchain-10", 300)
    scene = make_scene(replay, title="chain")
    states, first = scene.arrays["sweep_state"], scene.arrays["sweep_end"]
    distance = scene.arrays["distance"][states]
    assert distance[0] == 1  # the first transition leads to the end
    assert len(first) - 1 == len(scene.arrays["sweep_number"]) > 0
    assert first[-1] == len(states)
    # Within the first sweep a state's distance never jumps ahead of those that came before it.
    whole = distance[: np.flatnonzero(np.diff(distance) < -1)[0] + 1] if (np.diff(distance) < -1).any() else distance
    assert (whole <= np.maximum.accumulate(whole) + 1).all()


def test_thinning_keeps_ways_to_ends_and_says_so() -> None:
    replay = played("minigrid/simplecrossing-easy", 1_500)
    whole, thin = make_scene(replay, title="all"), make_scene(replay, title="few", most_states=40)
    assert whole.words["shown"] == whole.words["states"] > 40
    assert thin.words["shown"] == len(thin.arrays["vertex"]) == 40
    assert thin.words["states"] == whole.words["states"]
    assert set(thin.arrays["vertex"].tolist()) < set(whole.arrays["vertex"].tolist())
    edges, distance = thin.arrays["edge"], thin.arrays["distance"]
    assert edges.max() < 40
    for state in np.flatnonzero(distance > 0).tolist():
        onwards = edges[edges[:, 0] == state, 1]
        assert (distance[onwards] == distance[state] - 1).any(), "a kept state lost its way to an end"
    targets = thin.arrays["pair_target"]
    assert ((targets < 40) | (targets == NONE)).all()


def test_states_that_were_never_observed_have_no_observation() -> None:
    replay = small_replay()
    replay.add(0, 1, 0.0, 0, True, False, successor_unknown=True)
    facts = read_facts(replay)
    assert (facts.observation < 0).sum() == 1
    scene = make_scene(replay, title="unseen")
    assert np.isnan(scene.arrays["numbers"]).sum() == 1
