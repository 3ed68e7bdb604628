"""A whole task as arrays, and its exact values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.jit.array_table import addresses_of
from backsweep.tasks.exact import model_kernels
from backsweep.tasks.options import checked_chance, checked_int, normalised_return
from backsweep.tasks.state_graph import StateGraph

MOST_SWEEPS = 1_000_000


class StateObserver(Protocol):
    """Turns states into observations."""

    def observations(self, states: NDArray[np.int64]) -> NDArray[Any]:
        """Return one observation per state."""


@dataclass(frozen=True)
class PolicyReturn:
    """The expected result of a policy within the step limit, over levels, starts and random actions."""

    mean_return: float
    normalised: float
    """The mean return between the task's return bounds: 0 is the worst episode, 1 the best."""
    success: float
    """Probability that the episode ends in success; with goals that do not end it, this stays 0."""
    failure: float
    """Probability that the episode ends otherwise."""
    timeout: float
    """Probability that the episode is truncated."""


@dataclass(frozen=True)
class ExactTask:
    """All states of all levels of a task.

    A policy is one action per state (num_states,), or values (num_states, actions) of which the first largest is taken.
    """

    task: str
    """The task's id."""
    graph: StateGraph
    """States, moves and rewards."""
    observer: StateObserver
    """Turns states into observations."""
    step_limit: int
    """Steps after which an episode is truncated."""
    return_bounds: tuple[float, float]
    """The worst and the best return of an episode."""
    random_action_chance: float
    """The task's own probability of random actions, in addition to that of the policy."""

    @property
    def num_states(self) -> int:
        """Number of states with actions."""
        return self.graph.num_states

    @property
    def num_terminal(self) -> int:
        """Number of terminal states."""
        return self.graph.num_terminal

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return int(self.graph.next_state.shape[1])

    @property
    def num_levels(self) -> int:
        """Number of different start grids."""
        return self.graph.num_levels

    def optimal_values(self, discount: float, tolerance: float = 1e-9) -> NDArray[np.float64]:
        """Return Q* as (num_states, actions), exact to within `tolerance`."""
        return self._settled(np.empty(0, np.int64), discount, self.random_action_chance, tolerance)

    def policy_values(
        self, policy: ArrayLike, discount: float, random_chance: float = 0.0, tolerance: float = 1e-9
    ) -> NDArray[np.float64]:
        """Return Q of a policy as (num_states, actions), to within `tolerance`.

        From the second step on the policy's action is replaced by a random one with probability `random_chance`.
        """
        return self._settled(self.greedy(policy), discount, self._joint_chance(random_chance), tolerance)

    def expected_return(self, policy: ArrayLike, random_chance: float = 0.0) -> PolicyReturn:
        """Return the undiscounted result of a policy from the task's starts within its step limit."""
        actions, chance = self.greedy(policy), self._joint_chance(random_chance)
        graph = self.graph
        weights = np.zeros(self.num_states, dtype=np.float64)
        np.add.at(weights, graph.start_state, graph.start_probability)
        mean, success, ended = model_kernels.run_policy(
            addresses_of(self._moves), graph.succeeded, *self._ways_in, actions, chance, self.step_limit, weights
        )
        return PolicyReturn(
            mean_return=float(mean),
            normalised=normalised_return(float(mean), self.return_bounds),
            success=float(success),
            failure=float(max(ended - success, 0.0)),
            timeout=float(max(1.0 - ended, 0.0)),
        )

    @property
    def _moves(self) -> model_kernels.Moves:
        return model_kernels.Moves(self.graph.next_state, self.graph.reward)

    @cached_property
    def _ways_in(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The moves in reverse, which is the fastest way to propagate probability (see `list_ways_in`)."""
        count = np.zeros(self.num_states, dtype=np.int64)
        model_kernels.count_ways_in(self.graph.next_state, count)
        source = np.zeros((self.num_states, max(count.max(), 1)), dtype=np.int32)
        actions = np.zeros_like(source)
        model_kernels.list_ways_in(self.graph.next_state, source, actions)
        return source, actions

    def greedy(self, policy: ArrayLike) -> NDArray[np.int64]:
        """Return a policy as one action per state."""
        array = np.asarray(policy)
        if array.shape == (self.num_states, self.num_actions):
            if np.isnan(array).any():
                raise ValueError("policy must not hold NaN")
            best: NDArray[np.int64] = array.argmax(axis=1).astype(np.int64)
            return best
        if array.shape != (self.num_states,):
            raise ValueError(
                f"policy must have shape ({self.num_states},) or ({self.num_states}, {self.num_actions}), "
                f"got {array.shape}"
            )
        if array.dtype.kind not in "iu":
            raise TypeError(f"policy must hold integer actions, got {array.dtype}")
        if array.min() < 0 or array.max() >= self.num_actions:
            raise ValueError(f"policy must hold actions in 0..{self.num_actions - 1}")
        return array.astype(np.int64)

    def observations(self, states: ArrayLike) -> NDArray[Any]:
        """Return the observations of states (terminal ones allowed), one per entry."""
        array = np.asarray(states)
        total = self.num_states + self.num_terminal
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"states must be a list of integers, got {array.dtype} of shape {array.shape}")
        if array.size and (array.min() < 0 or array.max() >= total):
            raise ValueError(f"states must be in 0..{total - 1}")
        return self.observer.observations(array.astype(np.int64))

    def batches(self, batch_size: int = 1024) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Yield (states, observations) for all states with actions, in batches."""
        size = checked_int("batch_size", batch_size, 1)
        for first in range(0, self.num_states, size):
            states = np.arange(first, min(first + size, self.num_states))
            yield states, self.observations(states)

    def _joint_chance(self, random_chance: float) -> float:
        """Return the probability of a random action, by the policy or by the task: they are independent."""
        chance = checked_chance("random_chance", random_chance)
        return 1.0 - (1.0 - chance) * (1.0 - self.random_action_chance)

    def _settled(
        self, policy: NDArray[np.int64], discount: float, chance: float, tolerance: float
    ) -> NDArray[np.float64]:
        """Sweep over the values of all states until they change no more; return the values of all actions."""
        if not 0.0 <= discount < 1.0:
            raise ValueError(f"discount must be in 0..1 and below 1, got {discount}")
        if not tolerance > 0.0:
            raise ValueError(f"tolerance must be above 0, got {tolerance}")
        moves = addresses_of(self._moves)
        values = np.zeros(self.num_states + self.num_terminal, dtype=np.float64)
        for _ in range(MOST_SWEEPS):
            if model_kernels.sweep(policy, discount, chance, moves, values) * discount <= tolerance * (1.0 - discount):
                break
        else:
            raise RuntimeError(f"values did not settle in {MOST_SWEEPS} sweeps at discount {discount}")
        result = np.zeros(self.graph.next_state.shape, dtype=np.float64)
        model_kernels.action_values(discount, self.random_action_chance, moves, values, result)
        return result
