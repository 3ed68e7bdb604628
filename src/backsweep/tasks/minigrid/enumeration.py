"""Every reachable state of a MiniGrid task, with the moves between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import addresses_of
from backsweep.tasks.minigrid import codes, enumeration_kernels, tiles
from backsweep.tasks.minigrid.options import MiniGridOptions
from backsweep.tasks.minigrid.starts import Starts, all_starts, count_layouts
from backsweep.tasks.state_graph import StateGraph

MOST_NUMBERS = 1 << 26  # entries of the table of numbers, 4 bytes each
KEYS_AND_DOORS = {
    "doorkey": (True, 1),
    "unlock": (True, 1),
    "redbluedoors": (False, 2),
    "simplecrossing": (False, 0),
    "lavacrossing": (False, 0),
}


class MiniGridStates:
    """The states of a task as numbers, which `enumeration_kernels` defines."""

    def __init__(self, options: MiniGridOptions) -> None:
        if options.reward != "paper":
            raise ValueError("exact values need reward='paper': the package's reward depends on the step count")
        self.options = options
        self.rules = options.rules()
        cells = options.width * options.height
        has_key, num_doors = KEYS_AND_DOORS[options.level]
        self.door_radix = 3 if num_doors else 1
        items = cells + 1 if has_key else 1
        self.radix = items * self.door_radix**num_doors * cells * 4
        if self.radix * count_layouts(options) > MOST_NUMBERS:
            raise ValueError(
                f"{options.level} of size {options.size} has too many states to enumerate: up to "
                f"{self.radix * count_layouts(options)} numbers, at most {MOST_NUMBERS} are possible"
            )
        starts = all_starts(options)
        self.num_levels = starts.num_levels
        self.bases, self.layouts, start_layouts = _layouts_of(starts)
        self._start_numbers = np.zeros(len(starts.probability), dtype=np.int64)
        enumeration_kernels.number_starts(
            starts.cells,
            starts.lanes,
            start_layouts,
            self.layouts,
            self.radix,
            self.door_radix,
            options.width,
            self._start_numbers,
        )
        sizes = np.array([self.radix, self.door_radix], np.int64)
        self._layouts = enumeration_kernels.Layouts(self.bases, self.layouts, self.rules, sizes)
        self._layouts_at = addresses_of(self._layouts)
        self._start_probability = starts.probability
        self.numbers = np.zeros(0, dtype=np.int64)

    def graph(self) -> StateGraph:
        """Walk through all states and return them, terminal ones last."""
        actions = len(self.options.action_names)
        space = 1 << 14
        while True:
            seen = np.full(self.radix * len(self.layouts), enumeration_kernels.UNSEEN, dtype=np.int32)
            numbers = np.zeros(max(space, self._start_numbers.size), dtype=np.int64)
            ending = np.zeros(numbers.size, dtype=np.bool_)
            successors = np.zeros((numbers.size, actions), dtype=np.int32)
            rewards = np.zeros((numbers.size, actions), dtype=np.float64)
            succeeds = np.zeros((numbers.size, actions), dtype=np.bool_)
            walk = enumeration_kernels.Walk(seen, numbers, ending, successors, rewards, succeeds)
            count = enumeration_kernels.explore(self._start_numbers, self._layouts_at, addresses_of(walk))
            if count <= numbers.size:
                break
            space = 4 * numbers.size
        # Terminal states go to the back, so that the first rows are exactly the states with actions.
        order = np.argsort(ending[:count], kind="stable")
        place = np.zeros(count, dtype=np.int32)
        place[order] = np.arange(count, dtype=np.int32)
        acting = order[: count - int(ending[:count].sum())]
        self.numbers = numbers[:count][order]
        next_state = place[successors[acting]]
        return StateGraph(
            next_state=next_state,
            reward=rewards[acting],
            terminated=next_state >= acting.size,
            succeeded=succeeds[acting],
            num_states=acting.size,
            num_terminal=count - acting.size,
            num_levels=self.num_levels,
            start_state=place[seen[self._start_numbers]],
            start_probability=self._start_probability,
        )

    def observations(self, states: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the images of states, (n, size, size, 3)."""
        size = self.options.image_size
        canvas = tiles.make_canvas(self.options.width, self.options.height, size)
        images = np.zeros((states.size, size, size, 3), dtype=np.uint8)
        enumeration_kernels.draw_states(self.numbers[states], self._layouts_at, addresses_of(canvas), images)
        return images


def _layouts_of(starts: Starts) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the grids without keys, their layout rows, and the layout of every start."""
    is_key = (starts.cells >= codes.KEY) & (starts.cells < codes.KEY + codes.NUM_COLOURS)
    without_key = np.where(is_key, codes.EMPTY, starts.cells).astype(np.uint8)
    bases, first, start_layouts = np.unique(without_key, axis=0, return_index=True, return_inverse=True)
    layouts = np.zeros((len(bases), enumeration_kernels.LAYOUT_COLUMNS), dtype=np.int64)
    layouts[:, enumeration_kernels.LAYOUT_KEY] = np.where(is_key, starts.cells, codes.EMPTY).max(axis=1)[first]
    layouts[:, enumeration_kernels.LAYOUT_DOOR_A] = starts.lanes[first, codes.DOOR_A]
    layouts[:, enumeration_kernels.LAYOUT_DOOR_B] = starts.lanes[first, codes.DOOR_B]
    return bases, layouts, start_layouts.reshape(-1).astype(np.int64)
