"""The options of NChain."""

from __future__ import annotations

from dataclasses import dataclass

from backsweep.tasks.options import TaskOptions, checked_choice, checked_int

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
