"""Graph values in plain Python: a dict for the model, value iteration over all states for the solution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Row(NamedTuple):
    """One transition between states that are numbers."""

    state: int
    action: int
    reward: float
    successor: int
    terminated: bool


class PlainModel:
    """What followed each action in each state."""

    def __init__(self, rows: Iterable[Row], actions: int) -> None:
        self.rows = list(rows)
        self.actions = actions
        self.outcomes: dict[tuple[int, int], list[Row]] = {}
        self.states: set[int] = set()
        self.ends: set[int] = set()
        for row in self.rows:
            self.outcomes.setdefault((row.state, row.action), []).append(row)
            self.states.add(row.state)
            (self.ends if row.terminated else self.states).add(row.successor)
        self.ends -= self.states

    def tried(self, state: int) -> list[int]:
        """Return the actions that have rows in a state."""
        return [action for action in range(self.actions) if (state, action) in self.outcomes]

    def q_value(self, state: int, action: int, values: dict[int, float], discount: float) -> float:
        """Return the mean over the rows of a state and an action."""
        rows = self.outcomes[state, action]
        return sum(row.reward + (0.0 if row.terminated else discount * values[row.successor]) for row in rows) / len(
            rows
        )

    def answer(self, state: int, network: NDArray[Any], bounds: tuple[float, float]) -> float:
        """Return the network's best value of an untried action of a state, -inf if there is none."""
        untried = [action for action in range(self.actions) if (state, action) not in self.outcomes]
        return max((float(np.clip(network[state, action], *bounds)) for action in untried), default=-math.inf)

    def solve(
        self,
        network: NDArray[Any],
        bounds: tuple[float, float],
        discount: float,
        untried_counts: bool = True,
        last: Mapping[int, float] | None = None,
        margin: float | None = 1.0,
    ) -> dict[int, float]:
        """Return V of every state; `network` (states, actions) speaks for untried actions, or `last` where lower."""
        beyond = math.inf if margin is None else margin * (bounds[1] - bounds[0])
        limits = bounds[0] - beyond, bounds[1] + beyond
        values = dict.fromkeys(self.states, 0.0)
        change = math.inf
        while change > 1e-11:
            change = 0.0
            for state in self.states:
                tried = self.tried(state)
                found = [self.q_value(state, action, values, discount) for action in tried]
                if not tried or untried_counts:
                    found.append(min(self.answer(state, network, bounds), (last or {}).get(state, math.inf)))
                value = float(np.clip(max(found), *limits))
                change = max(change, abs(value - values[state]))
                values[state] = value
        return values | dict.fromkeys(self.ends, 0.0)


def shown(solved: Mapping[int, float], then: PlainModel, now: PlainModel) -> dict[int, float]:
    """Return what is shown as V of every state: what a renewal of `then` solved, when the model holds `now`.

    NaN for what is newer, and for an end where something follows now. What lost its last row is an end.
    """
    values = {state: solved[state] if state in then.states else math.nan for state in now.states}
    return values | {end: 0.0 if end in solved else math.nan for end in now.ends}


def widened(q_value: float, value: float, gap: float, floor: float) -> float:
    """Return the target of an action that is worth `q_value` where the best is worth `value`, or `value` is clipped."""
    return value + max(gap * (q_value - value), -floor) if q_value < value else q_value


class Outcome(NamedTuple):
    """What the rows of a state and an action have in common."""

    count: int
    rewards: float
    successors: dict[int, int]
    """How many of the rows went on in each state; a row that terminated went on nowhere."""


def outcomes(rows: Iterable[Row]) -> dict[tuple[int, int], Outcome]:
    """Return the outcome of every state and action that has rows."""
    found: dict[tuple[int, int], Outcome] = {}
    for row in rows:
        count, rewards, successors = found.get((row.state, row.action), Outcome(0, 0.0, {}))
        if not row.terminated:
            successors = successors | {row.successor: successors.get(row.successor, 0) + 1}
        found[row.state, row.action] = Outcome(count + 1, rewards + row.reward, successors)
    return found


def stretch_bounds(episodes: Iterable[list[float]], discount: float) -> tuple[float, float]:
    """Return the lowest and the highest value that the rewards of episodes give reason to expect."""
    episodes = list(episodes)
    paid = [
        sum(episode[first:last])
        for episode in episodes
        for first in range(len(episode))
        for last in range(first + 1, len(episode) + 1)
    ]
    rewards = [reward for episode in episodes for reward in episode]
    low = max(min(paid), min(rewards) / (1 - discount))
    high = min(max(paid), max(rewards) / (1 - discount))
    return min(0.0, low), max(0.0, high)


def exploration_weights(model: PlainModel, state: int, visits: dict[int, int], differing: float = 0.0) -> list[float]:
    """Return how much each action of a state is worth exploring.

    `visits` are those of every state, and `differing` is the chance that an action leads elsewhere when tried again.
    """
    weights = [1.0] * model.actions
    for action in model.tried(state):
        rows = model.outcomes[state, action]
        moved = [row.successor for row in rows if not row.terminated and (row.successor != state or differing)]
        weights[action] = (sum(1.0 / (1.0 + visits[successor]) for successor in moved) + differing) / len(rows)
    return weights if sum(weights) > 0 else [1.0] * model.actions


def explored_action(unit: float, weights: list[float]) -> int:
    """Return the action whose stretch of the summed weights holds `unit`."""
    left = unit * sum(weights)
    for action, weight in enumerate(weights):
        if left < weight:
            return action
        left -= weight
    return max(action for action, weight in enumerate(weights) if weight > 0)


def noise(rows: Iterable[Row], enough_repeated: float) -> tuple[float, float]:
    """Return how often an action led elsewhere when tried again, and how much of an average outcome is chance.

    By all pairs of rows with one state and action.
    """
    ends: dict[tuple[int, int], list[int | None]] = {}
    for row in rows:
        ends.setdefault((row.state, row.action), []).append(None if row.terminated else row.successor)
    count = sum(map(len, ends.values()))
    repeated = [found for found in ends.values() if len(found) > 1]
    times = sum(map(len, repeated))
    if not repeated or times < enough_repeated * count:
        return 0.0, 0.0
    differ = sum(
        len(found) * sum(one != other for one, other in permutations(found, 2)) / len(list(permutations(found, 2)))
        for found in repeated
    )
    return differ / times, differ / times * len(ends) / count
