"""What a family of tasks gives so that it can be run as a vector or as a single environment.

A lane is one running copy of a task. A family keeps all its lanes in flat arrays and moves them with numba kernels;
`vector.py` and `single.py` put Gymnasium's two interfaces on top.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.lanes_kernels import Outcomes

Bundle = tuple[NDArray[Any], ...]


class Lanes(abc.ABC):
    """All lanes of one task, in flat arrays.

        lane      streams   observations   rewards   terminated   truncated
        0         word      array          float     bool         bool
        1         word      array          float     bool         bool
        ...

    `observations` is the live picture of every lane: `step` and `reset` rewrite it in place.
    """

    SITUATION: ClassVar[tuple[str, ...]]
    """Names of the family's own arrays that say where every lane stands; with the base's they are all of it."""

    FAMILY: ClassVar[str]
    """What the family is called."""

    LANES_WORTH_THREADS: ClassVar[int]
    """How many lanes there must be before sharing their moves out among threads takes clearly less time than one."""

    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.spaces.Discrete
    observations: NDArray[Any]

    def __init__(self, num_lanes: int) -> None:
        self.num_lanes = num_lanes
        self.streams = np.zeros(num_lanes, dtype=np.uint64)
        self.rewards = np.zeros(num_lanes, dtype=np.float64)
        self.terminated = np.zeros(num_lanes, dtype=np.bool_)
        self.truncated = np.zeros(num_lanes, dtype=np.bool_)
        self.outcomes = Outcomes(self.streams, self.rewards, self.terminated, self.truncated)

    @abc.abstractmethod
    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Move every lane that is not `resting`; write observations, rewards, terminated and truncated."""

    @abc.abstractmethod
    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Draw a new level for every chosen lane from its own stream and write its observation."""

    @abc.abstractmethod
    def turn(
        self,
        parts: int,
        moving: bool,
        beginning: bool,
        actions: NDArray[np.int64],
        resting: NDArray[np.bool_],
        ended: NDArray[np.bool_],
        finals: NDArray[Any],
    ) -> NDArray[np.int64]:
        """Do all of a turn in one threaded call: move, copy last observations, begin the next episodes.

        Lanes that are `resting` are left out. The last observation of an episode that ends is copied into `finals`,
        which has one row of numbers per lane. The work is split into `parts` parts that threads share out.

        Unless `moving`, nothing moves and every lane that is not resting begins an episode. Unless `beginning`, lanes
        whose episode ends stay at its end, and `finals` is left as it is. `ended` says whose episode ended, or began.
        Returns the lanes for which no level was found; all others have had their turn.
        """

    def situation(self) -> dict[str, NDArray[Any]]:
        """Return the live arrays that say where every lane stands: copy them to save, write into them to restore."""
        names = ("streams", "rewards", "terminated", "truncated", "observations", *self.SITUATION)
        return {name: getattr(self, name) for name in names}

    @abc.abstractmethod
    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Return an RGB image of one lane, large enough to look at."""

    @property
    @abc.abstractmethod
    def bundles(self) -> tuple[Bundle, ...]:
        """What the family's kernels work on: the outcomes, then the family's own."""

    @property
    def moves_by_kernels_alone(self) -> bool:
        """Whether the kernels are all there is to a step, so that others may call them in its place."""
        return True
