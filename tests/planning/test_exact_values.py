"""Graph values against values from elsewhere: a task's exact Q*, and linear programs for random worlds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import linprog

from backsweep import GraphValues, Replay
from backsweep.tasks import exact

LANES = 256


@pytest.mark.parametrize("task", ["nchain-20", "minigrid/redbluedoors", "minigrid/lavacrossing-easy"])
def test_with_every_state_and_action_stored_they_are_the_tasks_own(task: str) -> None:
    model = exact(task)
    states, actions = (axis.ravel() for axis in np.indices((model.num_states, model.num_actions)))
    order = np.random.default_rng(0).permutation(len(states))
    states, actions = states[order], actions[order]
    images = model.observations(np.arange(model.num_states + model.num_terminal))
    space = gym.spaces.Box(0, 255, images.shape[1:], images.dtype)
    replay = Replay(
        space,
        gym.spaces.Discrete(model.num_actions),
        len(states) + LANES,
        num_envs=LANES,
        gamma=0.97,
        values=GraphValues(gap=1.0, margin=None, tolerance=1e-9),
    )
    graph = model.graph
    for first in range(0, len(states), LANES):
        where, how = states[first : first + LANES], actions[first : first + LANES]
        mask = np.arange(LANES) < len(where)
        where, how = np.resize(where, LANES), np.resize(how, LANES)
        ends = graph.terminated[where, how]
        after = graph.next_state[where, how]
        # Every row is an episode of its own that a time limit cuts off, which must not end its value.
        replay.add(images[where], how, graph.reward[where, how], images[after], ends, ~ends, mask=mask)

    def not_needed(observations: Any) -> Any:
        raise AssertionError("every action was tried: there is nothing to ask the network")

    renewal = replay.renew_values(not_needed)
    assert (renewal.asked, renewal.unsolved) == (0, 0)
    best = model.optimal_values(0.97)
    rows = np.arange(len(states))
    np.testing.assert_allclose(replay.read(rows).target, best[states, actions], atol=1e-5)
    for state in range(0, model.num_states, 97):
        vertex = replay.graph.vertex(images[state])
        assert vertex is not None
        np.testing.assert_allclose(replay.graph.action_values(vertex), best[state], atol=1e-5)


def linear_program(counts: np.ndarray, rewards: np.ndarray, network: np.ndarray, discount: float) -> np.ndarray:
    """Return V of a stored world: the smallest values that no action beats.

    `counts` (states, actions, successors + 1) are stored rows, the last successor being the end; `rewards` are their
    sums; `network` speaks for actions without rows.
    """
    states, actions, _ = counts.shape
    below, limit = [], []
    for state in range(states):
        for action in range(actions):
            row, total = np.zeros(states), counts[state, action].sum()
            row[state] = -1.0
            if total:
                row += discount * counts[state, action, :-1] / total
            below.append(row)
            limit.append(-(rewards[state, action] / total if total else network[state, action]))
    found = linprog(np.ones(states), A_ub=np.array(below), b_ub=np.array(limit), bounds=(None, None), method="highs")
    assert found.success
    values: np.ndarray = found.x
    return values


@pytest.mark.parametrize("seed", range(12))
def test_in_random_worlds_they_are_those_of_a_linear_program(seed: int) -> None:
    random = np.random.default_rng(seed)
    states, actions, discount = 25, 4, float(random.choice([0.5, 0.9, 0.98]))
    untried = seed % 3 / 5  # in some worlds every action was tried, and there are closed loops without an end
    ends = 0.1 if seed % 2 else 0.0
    counts, rewards = np.zeros((states, actions, states + 1), int), np.zeros((states, actions))
    network = random.normal(size=(states, actions)) * 3
    replay = Replay(
        gym.spaces.Discrete(states + 1),
        gym.spaces.Discrete(actions),
        5_000,
        gamma=discount,
        values=GraphValues(gap=1.0, margin=None, cautious=False, tolerance=1e-10, most_backups=1e5),
    )
    stored = []
    for state in range(states):
        for action in range(actions):
            if random.random() < untried and action > 0:
                continue
            successors = random.integers(states, size=int(random.integers(1, 4)))
            for _ in range(int(random.integers(1, 6))):
                end = bool(random.random() < ends)
                stored.append((state, action, random.normal(), states if end else int(random.choice(successors)), end))
    for place in random.permutation(len(stored)):
        state, action, reward, successor, end = stored[place]
        counts[state, action, successor] += 1
        rewards[state, action] += reward
        replay.add(state, action, reward, successor, end, not end)
        if random.random() < 0.02:
            replay.renew_values(lambda asked: -network[asked % states], bounds=(-9.0, 9.0))
    renewal = replay.renew_values(lambda asked: network[asked], bounds=(-2.0, 2.0))
    assert renewal.unsolved == 0
    expected = linear_program(counts, rewards, network.clip(-2.0, 2.0), discount)
    by_vertex = dict(zip(replay.graph.vertices.tolist(), replay.graph.values().tolist(), strict=True))
    found = [by_vertex[replay.graph.vertex(state)] for state in range(states)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
