"""NChain: its options, its lanes, and its states as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import address_table
from backsweep.snapshot.contents import need_within
from backsweep.tasks.chain import moves_kernels
from backsweep.tasks.chain.moves_kernels import NUM_ACTIONS, advance_lanes, advance_share, next_state
from backsweep.tasks.lanes import Bundle, Lanes
from backsweep.tasks.options import TaskOptions, checked_choice, checked_int
from backsweep.tasks.state_graph import StateGraph

OBSERVATIONS = ("index", "one_hot")


@dataclass(frozen=True, kw_only=True)
class ChainOptions(TaskOptions):
    """Settings of one chain, checked when made."""

    length: int = 20
    """Number of states N; the last one ends the episode."""
    max_steps: int | None = None
    """Step limit; None means 10 N^2, about ten times the length of a random walk. The paper states none."""
    observation: str = "index"
    """"index" (the state's number) or "one_hot" (a vector of N floats)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", checked_int("length", self.length, 2))
        if self.max_steps is None:
            object.__setattr__(self, "max_steps", 10 * self.length**2)
        checked_choice("observation", self.observation, OBSERVATIONS)
        super().__post_init__()

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("forward", "backward")

    @property
    def return_bounds(self) -> tuple[float, float]:
        """The worst and the best return of an episode: the end is not reached, or it is."""
        return 0.0, 1.0 if self.step_limit >= self.length - 1 else 0.0


class ChainLanes(Lanes):
    """Chains of one length, side by side; every episode starts at state 0."""

    FAMILY = "nchain"
    SITUATION = ("states", "steps")
    LANES_WORTH_THREADS = 8192
    ADVANCE = staticmethod(advance_lanes)
    ADVANCE_SHARE = staticmethod(advance_share)

    def __init__(self, options: ChainOptions, num_lanes: int) -> None:
        super().__init__(num_lanes)
        self.options = options
        self.single_action_space = gymnasium.spaces.Discrete(moves_kernels.NUM_ACTIONS)
        self.states = np.zeros(num_lanes, dtype=np.int64)
        self.steps = np.zeros(num_lanes, dtype=np.int64)
        if options.observation == "index":
            self.single_observation_space = gymnasium.spaces.Discrete(options.length)
            self.observations = self.states
        else:
            self.single_observation_space = gymnasium.spaces.Box(0.0, 1.0, (options.length,), np.float32)
            self.observations = one_hot(self.states, options.length)
        is_one_hot = options.observation == "one_hot"
        settings = np.array([options.length, options.step_limit, is_one_hot], np.int64)
        chance = np.array([options.random_action_chance], np.float64)
        self._chain = moves_kernels.ChainArrays(settings, chance, self.states, self.steps)
        self._table = address_table(self.bundles)

    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Move the lanes that are not resting."""
        moves_kernels.move_lanes(actions, resting, self._table)
        self._observe()

    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Put the chosen lanes back to state 0."""
        self.states[chosen] = 0
        self.steps[chosen] = 0
        self._observe()

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Need states of the chain."""
        need_within(arrays["states"], 0, self.options.length, "states")
        need_within(arrays["steps"], 0, self.options.step_limit + 1, "steps")

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """The outcomes and the chain."""
        return self.outcomes, self._chain

    @property
    def moves_by_kernels_alone(self) -> bool:
        """One-hot observations are made outside the kernels."""
        return self.options.observation == "index"

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Draw the chain as a row of cells: the agent red, the end green."""
        return chain_picture(int(self.states[lane]), self.options.length)

    def _observe(self) -> None:
        if self.options.observation == "one_hot":
            self.observations[:] = one_hot(self.states, self.options.length)


def one_hot(states: NDArray[np.int64], length: int) -> NDArray[np.float32]:
    """Return one row per state with a single 1."""
    rows = np.zeros((states.size, length), dtype=np.float32)
    rows[np.arange(states.size), states] = 1.0
    return rows


def chain_picture(state: int, length: int, cell: int = 16) -> NDArray[np.uint8]:
    """Return an RGB image of a chain with the agent at `state`."""
    image = np.full((cell + 4, length * cell + 4, 3), 100, dtype=np.uint8)
    for index in range(length):
        colour = (255, 0, 0) if index == state else (0, 255, 0) if index == length - 1 else (240, 240, 240)
        image[4:cell, 4 + index * cell : (index + 1) * cell] = colour
    return image


class ChainStates:
    """The states of a chain; its last one is terminal."""

    def __init__(self, options: ChainOptions) -> None:
        self.options = options

    def graph(self) -> StateGraph:
        """Return the chain's moves."""
        length = self.options.length
        moves = np.array(
            [[next_state(state, action, length) for action in range(NUM_ACTIONS)] for state in range(length - 1)],
            dtype=np.int32,
        )
        ends = moves == length - 1
        return StateGraph(
            next_state=moves,
            reward=ends.astype(np.float64),
            terminated=ends,
            succeeded=ends,
            num_states=length - 1,
            num_terminal=1,
            num_levels=1,
            start_state=np.zeros(1, dtype=np.int32),
            start_probability=np.ones(1, dtype=np.float64),
        )

    def observations(self, states: NDArray[np.int64]) -> NDArray[Any]:
        """Return the observations of states."""
        return states if self.options.observation == "index" else one_hot(states, self.options.length)
