"""The options of a MiniGrid task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.minigrid import codes
from backsweep.tasks.options import TaskOptions, checked_choice, checked_flag, checked_int

LEVELS = ("doorkey", "unlock", "redbluedoors", "simplecrossing", "lavacrossing")
REWARDS = ("paper", "package")
ACTION_SETS = ("paper", "released", "package")
WRONG_DOORS = ("paper", "released")

UNLOCK_ROOM = 6  # the original's room size is fixed
# The smallest size at which the original can draw a level.
SMALLEST = {"doorkey": 5, "unlock": UNLOCK_ROOM, "redbluedoors": 3, "simplecrossing": 3, "lavacrossing": 3}
# Steps allowed per squared size, as in the originals.
STEPS_PER_SQUARE = {"doorkey": 10, "unlock": 8, "redbluedoors": 20, "simplecrossing": 4, "lavacrossing": 4}
FAMILIES = {
    "doorkey": codes.FAMILY_DOORKEY,
    "unlock": codes.FAMILY_UNLOCK,
    "redbluedoors": codes.FAMILY_REDBLUEDOORS,
    "simplecrossing": codes.FAMILY_CROSSING,
    "lavacrossing": codes.FAMILY_CROSSING,
}


@dataclass(frozen=True, kw_only=True)
class MiniGridOptions(TaskOptions):
    """Settings of one MiniGrid task, checked when made."""

    level: str
    """Which kind of level: one of LEVELS. Set by the task id."""
    size: int
    """Side of the grid (of the middle room in RedBlueDoors, of a room in Unlock, where only 6 exists)."""
    crossings: int | None = None
    """Number of rivers on the crossing tasks; None elsewhere."""
    max_steps: int | None = None
    """Step limit; None means the original's."""
    reward: str = "paper"
    """"paper": +max_steps, -max_steps, -1. "package": the original's, which depends on the step count."""
    actions: str = "paper"
    """"paper": six. "released": three on the crossing tasks, seven elsewhere. "package": seven."""
    wrong_door: str = "paper"
    """What opening the blue door first pays under the paper's rewards: "paper" -1, "released" -max_steps."""
    goals_terminate: bool = True
    """False: entering the goal pays +max_steps, leaving it -max_steps, staying 0, and the episode continues."""
    image_size: int = 40
    """Side of the observed image in pixels."""

    def __post_init__(self) -> None:
        checked_choice("level", self.level, LEVELS)
        high = UNLOCK_ROOM if self.level == "unlock" else None
        size = checked_int("size", self.size, SMALLEST[self.level], high)
        if self.has_crossings and size % 2 == 0:
            raise ValueError(f"size must be odd on the crossing tasks, got {size}")
        if self.has_crossings:
            crossings = checked_int("crossings", self.crossings, 0)
            object.__setattr__(self, "crossings", min(crossings, 2 * len(range(2, size - 2, 2))))
        elif self.crossings is not None:
            raise ValueError(f"crossings must be left out on {self.level}, got {self.crossings}")
        if self.max_steps is None:
            object.__setattr__(self, "max_steps", STEPS_PER_SQUARE[self.level] * size**2)
        super().__post_init__()
        checked_choice("reward", self.reward, REWARDS)
        checked_choice("actions", self.actions, ACTION_SETS)
        checked_choice("wrong_door", self.wrong_door, WRONG_DOORS)
        if self.wrong_door == "released" and (self.level != "redbluedoors" or self.reward != "paper"):
            raise ValueError("wrong_door='released' needs redbluedoors with reward='paper'")
        if not checked_flag("goals_terminate", self.goals_terminate):
            if self.level in ("unlock", "redbluedoors"):
                raise ValueError(f"goals_terminate=False needs a task with a goal cell, {self.level} has none")
            if self.reward != "paper":
                raise ValueError("goals_terminate=False has its own rewards and needs reward='paper'")
        checked_int("image_size", self.image_size, 1)

    @property
    def has_crossings(self) -> bool:
        """Whether the levels are rooms with rivers."""
        return self.level in ("simplecrossing", "lavacrossing")

    @property
    def width(self) -> int:
        """Number of columns of the grid."""
        return {"unlock": 2 * (self.size - 1) + 1, "redbluedoors": 2 * self.size}.get(self.level, self.size)

    @property
    def height(self) -> int:
        """Number of rows of the grid."""
        return self.size

    @property
    def action_names(self) -> tuple[str, ...]:
        """The actions, in order; they are always the first ones of the original's."""
        if self.actions == "released":
            return codes.ACTION_NAMES[:3] if self.has_crossings else codes.ACTION_NAMES
        return codes.ACTION_NAMES[:6] if self.actions == "paper" else codes.ACTION_NAMES

    @property
    def fewest_steps(self) -> int | None:
        """Length of the shortest success over all levels and starts; None where no level can be solved.

        DoorKey: pick up, turn, toggle, two forward, turn, forward. Unlock: turn to the key, pick up, turn, toggle (the
        agent never starts facing an object). RedBlueDoors: toggle, turn around, cross the room, toggle. Crossing:
        straight along two sides, with one turn.
        """
        steps = {"doorkey": 7, "unlock": 4, "redbluedoors": self.size + 1}.get(self.level, 2 * (self.size - 3) + 1)
        if self.has_crossings and self.size == 3:
            return None  # the only free cell is the goal: the agent starts on it and can never enter it
        return steps if steps <= self.step_limit else None

    @property
    def return_bounds(self) -> tuple[float, float]:
        """The worst and the best return that an episode can have, over all levels, starts and actions."""
        limit = float(self.step_limit)
        fewest = self.fewest_steps
        if self.reward == "package":
            return 0.0, 0.0 if fewest is None else 1.0 - 0.9 * (fewest / self.step_limit)
        if self.has_crossings and self.size == 3 and not self.goals_terminate:
            return 0.0, 0.0  # the agent never leaves the goal
        # Losing on the last step costs the most: every step before it has cost 1 as well. A loss is always within
        # reach: some level starts one step from the lava or from the blue door.
        can_lose = (self.level == "lavacrossing" and bool(self.crossings)) or self.wrong_door == "released"
        low = -(limit - 1.0) - limit if can_lose else -limit
        if fewest is not None:
            return low, limit - (fewest - 1.0)
        # Without success the best is to run out of time, or, where that costs only 1, to open the wrong door at once.
        return low, -1.0 if self.level == "redbluedoors" and self.wrong_door == "paper" else -limit

    def rules(self) -> NDArray[np.int64]:
        """Return the kernels' rules vector."""
        rules = np.zeros(codes.RULE_COLUMNS, dtype=np.int64)
        rules[codes.FAMILY] = FAMILIES[self.level]
        rules[codes.WIDTH] = self.width
        rules[codes.HEIGHT] = self.height
        rules[codes.MAX_STEPS] = self.step_limit
        rules[codes.CROSSINGS] = self.crossings or 0
        rules[codes.OBSTACLE] = codes.LAVA if self.level == "lavacrossing" else codes.WALL
        rules[codes.REWARD_FORM] = codes.REWARD_PACKAGE if self.reward == "package" else codes.REWARD_PAPER
        rules[codes.WRONG_DOOR_COSTS] = self.wrong_door == "released"
        rules[codes.GOAL_TERMINATES] = self.goals_terminate
        return rules
