"""The options of Sokoban."""

from __future__ import annotations

from dataclasses import dataclass

from backsweep.store.layout import WORD
from backsweep.tasks.options import TaskOptions, checked_choice, checked_int
from backsweep.tasks.sokoban import codes

ACTION_SETS = ("paper", "package")
CHANNELS = 3


@dataclass(frozen=True, kw_only=True)
class SokobanOptions(TaskOptions):
    """Settings of one Sokoban task, checked when made."""

    height: int
    """Rows of the room, its outer walls included."""
    width: int
    """Columns of the room, its outer walls included."""
    boxes: int
    """Number of boxes and of targets."""
    max_steps: int | None = 120
    actions: str = "paper"
    """"paper": the eight pushes and moves. "package": the no-operation before them."""
    image_size: int = 84
    """Side of the observed image in pixels."""

    def __post_init__(self) -> None:
        checked_int("height", self.height, 3, 1000)
        checked_int("width", self.width, 3, 1000)
        checked_int("boxes", self.boxes, 1, 62)
        inside = (self.height - 2) * (self.width - 2)
        if inside < 2 * self.boxes + 1:
            raise ValueError(
                f"a room of {self.height}x{self.width} has {inside} cells inside its walls, too few for "
                f"{self.boxes} boxes, as many free targets and the player"
            )
        if max(self.height, self.width) < 5:
            raise ValueError(
                f"a room of {self.height}x{self.width} leaves no space to push: height or width must be 5 or more"
            )
        checked_choice("actions", self.actions, ACTION_SETS)
        checked_int("image_size", self.image_size, 1)
        super().__post_init__()

    @property
    def action_names(self) -> tuple[str, ...]:
        return codes.ACTION_NAMES[1:] if self.actions == "paper" else codes.ACTION_NAMES

    @property
    def bands(self) -> int:
        """One for each row of the room, where rows are as high as each other: a move changes one or two of them."""
        side, uneven = divmod(self.image_size, self.height)
        return 1 if uneven or side * self.image_size * CHANNELS % WORD else self.height

    @property
    def return_bounds(self) -> tuple[float, float]:
        """Bounds of every return.

        No box starts on a target, and the box rewards add up to the number of boxes on targets at the end, so doing
        nothing until time is up is the worst. Each box needs a push, so no solution is shorter than the number of
        boxes; with one box that bound is met, with more it may be a little above the best level.
        """
        best = codes.SOLVED_REWARD + self.boxes * codes.BOX_REWARD + self.boxes * codes.STEP_PENALTY
        low = self.step_limit * codes.STEP_PENALTY
        if self.step_limit < self.boxes:
            return low, self.step_limit * (codes.BOX_REWARD + codes.STEP_PENALTY)
        return low, best
