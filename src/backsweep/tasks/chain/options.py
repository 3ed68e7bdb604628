"""The options of NChain."""

from __future__ import annotations

from dataclasses import dataclass

from backsweep.tasks.options import checked_chance, checked_choice, checked_int

OBSERVATIONS = ("index", "one_hot")


@dataclass(frozen=True, kw_only=True)
class ChainOptions:
    """Settings of one chain, checked when made."""

    length: int = 20
    """Number of states N; the last one ends the episode."""
    max_steps: int | None = None
    """Step limit; None means 10 N^2, about ten times the length of a random walk. The paper states none."""
    observation: str = "index"
    """"index" (the state's number) or "one_hot" (a vector of N floats)."""
    random_action_chance: float = 0.0
    """Probability that a step's action is replaced by a uniformly random one."""

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "length", checked_int("length", self.length, 2))
        limit = 10 * self.length**2 if self.max_steps is None else self.max_steps
        object.__setattr__(self, "max_steps", checked_int("max_steps", limit, 1))
        checked_choice("observation", self.observation, OBSERVATIONS)
        chance = checked_chance("random_action_chance", self.random_action_chance)
        object.__setattr__(self, "random_action_chance", chance)

    @property
    def step_limit(self) -> int:
        """The step limit as a number."""
        assert self.max_steps is not None
        return self.max_steps

    @property
    def action_names(self) -> tuple[str, ...]:
        """The actions, in order."""
        return ("forward", "backward")

    @property
    def return_bounds(self) -> tuple[float, float]:
        """The worst and the best return of an episode: the end is not reached, or it is."""
        return 0.0, 1.0 if self.step_limit >= self.length - 1 else 0.0
