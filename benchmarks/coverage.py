"""How soon random actions find a way to the goal, by three rules for choosing them.

    python -m benchmarks.coverage              the seven MiniGrid tasks, three seeds, 100,000 random actions: minutes
    python -m benchmarks.coverage --quick      one task, one seed, 20,000 actions, and nothing is kept

Nothing is learned here: actions are random from the first to the last, and a start counts as solved once the moves that
were tried contain a way from it to the goal. The rules:

    uniform     all actions alike
    graph       `Replay.explore`: untried actions and seldom visited successors are preferred
    nearest     `Replay.explore` where an action is untried, else a step towards the nearest state that has one, along
                the moves tried so far; distances are computed every 1,000 steps

Tasks are stepped by their tables of moves, so the numbers depend on nothing but the seeds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep import GraphValues, Replay
from backsweep.graph.distances import reverse_distances
from backsweep.tasks.exact import ExactTask, exact

RECORD = Path(__file__).resolve().parent / "results" / "coverage.json"
TASKS = (
    "minigrid/doorkey",
    "minigrid/redbluedoors",
    "minigrid/unlock",
    "minigrid/simplecrossing-easy",
    "minigrid/lavacrossing-easy",
    "minigrid/simplecrossing-hard",
    "minigrid/lavacrossing-hard",
)
RULES = ("uniform", "graph", "nearest")
SEEDS = (10_000, 10_001, 10_002)  # for tuning
STEPS, INTERVAL = 100_000, 25_000
RENEWAL = 1_000


class Walk:
    """Random actions in a task by one rule, and what they have tried."""

    def __init__(self, task: ExactTask, rule: str, seed: int) -> None:
        """Start at one of the task's starts."""
        self.task, self.moves, self.rule = task, task.graph, rule
        self.random = np.random.default_rng(seed)
        self.chances = self.moves.start_probability / self.moves.start_probability.sum()
        self.tried = np.zeros(self.moves.next_state.shape, np.bool_)
        states = gym.spaces.Discrete(task.num_states + task.num_terminal)
        self.replay = Replay(states, gym.spaces.Discrete(task.num_actions), STEPS, values=GraphValues(noise_limit=None))
        self.distance = np.zeros(task.num_states, np.int64)
        self.steps, self.length, self.state = 0, 0, self._start()

    def _start(self) -> int:
        return int(self.random.choice(self.moves.start_state, p=self.chances))

    def step(self) -> None:
        """Take one action."""
        state, action = self.state, self._action()
        after = int(self.moves.next_state[state, action])
        terminated = bool(self.moves.terminated[state, action])
        self.length += 1
        truncated = not terminated and self.length >= self.task.step_limit
        self.tried[state, action] = True
        if self.rule != "uniform":
            self.replay.add(state, action, float(self.moves.reward[state, action]), after, terminated, truncated)
        self.state = after
        if terminated or truncated:
            self.state, self.length = self._start(), 0
        self.steps += 1
        if self.rule == "nearest" and self.steps % RENEWAL == 0:
            self.distance = self._steps_to(np.flatnonzero(self.tried.any(axis=1) & ~self.tried.all(axis=1)))

    def _action(self) -> int:
        if self.rule == "uniform":
            return int(self.random.integers(self.task.num_actions))
        if self.rule == "nearest" and self.tried[self.state].all():
            ahead = self.moves.next_state[self.state]
            going_on = ~self.moves.terminated[self.state]
            distance = np.where(going_on, self.distance[np.where(going_on, ahead, 0)], -1)
            if (distance >= 0).any():
                best = np.flatnonzero(distance == distance[distance >= 0].min())
                return int(self.random.choice(best))
        return self.replay.explore(self.state, self.random.random())

    def _steps_to(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the steps from every state to the nearest of some along tried moves, -1 without a way."""
        source, action = np.nonzero(self.tried & ~self.moves.terminated)
        target = self.moves.next_state[source, action].astype(np.int64)
        return reverse_distances(self.task.num_states, source, target, ends)

    def solved(self) -> float:
        """Return the probability of a start from which the tried moves lead to the goal."""
        goal = np.flatnonzero((self.tried & self.moves.succeeded).any(axis=1))
        known = self._steps_to(goal) >= 0
        return float(self.chances[known[self.moves.start_state]].sum())


def measure(task: str, rule: str, seed: int, steps: int, interval: int) -> list[float]:
    """Return the share of starts that are solved, at every interval."""
    walk, shares = Walk(exact(task), rule, seed), []
    for step in range(1, steps + 1):
        walk.step()
        if step % interval == 0:
            shares.append(round(walk.solved(), 4))
    return shares


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one task, one seed, few steps; keep nothing")
    quick = parser.parse_args().quick
    tasks, seeds = (TASKS[:1], SEEDS[:1]) if quick else (TASKS, SEEDS)
    steps, interval = (20_000, 5_000) if quick else (STEPS, INTERVAL)
    rows = []
    for task in tasks:
        for rule in RULES:
            shares = [measure(task, rule, seed, steps, interval) for seed in seeds]
            rows.append({"task": task, "rule": rule, "solved": shares})
            mean = ", ".join(f"{share:.2f}" for share in np.mean(shares, axis=0))
            print(f"{task:30} {rule:8} {mean}", flush=True)
    if not quick:
        record = {"seeds": seeds, "steps": steps, "interval": interval, "rows": rows}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
