"""NChain as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.chain.lanes import one_hot
from backsweep.tasks.chain.moves_kernels import NUM_ACTIONS, next_state
from backsweep.tasks.chain.options import ChainOptions
from backsweep.tasks.state_graph import StateGraph


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
