"""NChain's lanes."""

from __future__ import annotations

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import address_table
from backsweep.tasks.chain import moves_kernels
from backsweep.tasks.chain.advance_kernels import advance_lanes
from backsweep.tasks.chain.options import ChainOptions
from backsweep.tasks.lanes import Bundle, Lanes


class ChainLanes(Lanes):
    """Chains of one length, side by side; every episode starts at state 0."""

    FAMILY = "nchain"
    SITUATION = ("states", "steps")
    LANES_WORTH_THREADS = 8192
    ADVANCE = staticmethod(advance_lanes)

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
