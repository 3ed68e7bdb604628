"""The base class of task families, which run as a vector or as a single environment.

A lane is one running copy of a task. A family keeps all its lanes in flat arrays and steps them with numba kernels;
`lane_envs.py` has Gymnasium's two interfaces.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Table
from backsweep.snapshot.contents import need, need_like
from backsweep.tasks.lanes_kernels import Outcomes

Bundle = tuple[NDArray[Any], ...]


class Lanes(abc.ABC):
    """All lanes of one task, in flat arrays.

        lane      streams   observations   rewards   terminated   truncated
        0         word      array          float     bool         bool
        1         word      array          float     bool         bool
        ...

    `step` and `reset` rewrite `observations` in place.
    """

    SITUATION: ClassVar[tuple[str, ...]]
    """Names of the family's own state arrays; with those of the base class they are the whole state."""

    FAMILY: ClassVar[str]
    """The name of the family."""

    LANES_WORTH_THREADS: ClassVar[int]
    """The number of lanes from which several threads are clearly faster than one."""

    ADVANCE: ClassVar[Callable[..., None]]
    """The family's threaded kernel for `advance`."""

    ADVANCE_SHARE: ClassVar[Callable[..., None]]
    """The family's kernel for one share of the lanes, which the threaded one calls."""

    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.spaces.Discrete
    observations: NDArray[Any]
    _table: Table

    def __init__(self, num_lanes: int) -> None:
        self.num_lanes = num_lanes
        self.streams = np.zeros(num_lanes, dtype=np.uint64)
        self.rewards = np.zeros(num_lanes, dtype=np.float64)
        self.terminated = np.zeros(num_lanes, dtype=np.bool_)
        self.truncated = np.zeros(num_lanes, dtype=np.bool_)
        self.outcomes = Outcomes(self.streams, self.rewards, self.terminated, self.truncated)

    @abc.abstractmethod
    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Step every lane that is not `resting`; write observations, rewards, terminated and truncated."""

    @abc.abstractmethod
    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Draw a new level for every chosen lane from its own stream and write its observation."""

    def advance(self, shares: int, moving: bool, beginning: bool, addresses: Addresses) -> NDArray[np.int64]:
        """Step, copy last observations and start the next episodes in one call.

        `addresses` are those of an `Advance`. Lanes that are resting are skipped. The last observation of an episode
        that ends is copied into `finals`. The threads divide the lanes into `shares`. A single share is advanced
        without threads: the threaded kernel takes seconds to compile.

        Unless `moving`, no lane is stepped and every lane that is not resting starts an episode. Unless `beginning`,
        lanes whose episode ends stay at its end, and `finals` is not changed. `ended` says whose episode ended, or
        started. Returns the lanes for which no level was found; all others are done.
        """
        if shares == 1:
            self.ADVANCE_SHARE(0, 1, moving, beginning, addresses, self._table)
        else:
            self.ADVANCE(shares, moving, beginning, addresses, self._table)
        return np.empty(0, dtype=np.int64)

    def situation(self) -> dict[str, NDArray[Any]]:
        """Return the live state arrays of all lanes."""
        names = ("streams", "rewards", "terminated", "truncated", "observations", *self.SITUATION)
        return {name: getattr(self, name) for name in names}

    def only(self, lane: int) -> NDArray[np.bool_]:
        """Return a mask that chooses one lane."""
        mask: NDArray[np.bool_] = np.arange(self.num_lanes) == lane
        return mask

    def state(self, lanes: slice = slice(None)) -> dict[str, NDArray[Any]]:
        """Return a copy of the state of some lanes."""
        return {name: array[lanes].copy() for name, array in self.situation().items()}

    def load_state(self, arrays: Mapping[str, NDArray[Any]], lanes: slice = slice(None)) -> None:
        """Restore a state that `state` returned; raise a ValueError, with nothing changed, if it is none."""
        places = {name: array[lanes] for name, array in self.situation().items()}
        for name, place in places.items():
            need_like(arrays, name, place)
        self.check_state(arrays)
        for name, place in places.items():
            place[...] = arrays[name]

    @abc.abstractmethod
    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise a ValueError if arrays of the right form cannot be a state: kernels follow their numbers."""

    @abc.abstractmethod
    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Return an enlarged RGB image of one lane."""

    @property
    @abc.abstractmethod
    def bundles(self) -> tuple[Bundle, ...]:
        """The bundles that the family's kernels use: the outcomes, then the family's own."""

    @property
    def moves_by_kernels_alone(self) -> bool:
        """Whether a step consists of kernels only, so that other code may call them directly."""
        return True


def need_walls(cells: NDArray[Any], wall: int, what: str) -> None:
    """Need the outermost cells of grids (lanes, height, width) to be walls: kernels do not look for an edge."""
    edges = (cells[:, 0], cells[:, -1], cells[:, :, 0], cells[:, :, -1])
    need(all((edge == wall).all() for edge in edges), f"{what} are not surrounded by walls")
