"""From what was measured to a recommendation in one sentence, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from backsweep.encoding import Encoder, ExactBytes, Quantized
from backsweep.inspection.measures import Measures

Verdict = Literal["yes", "maybe", "no"]

ENOUGH_COME_BACK = 0.5
"""From this share of steps to known states on, episodes share most of what they see."""
SOME_COME_BACK = 0.1
ENOUGH_AGREE = 0.65
"""From this share on, a cell of a grid is like a state: the same action mostly leads to the same cell."""
OTHERWISE = "use Prioritized() or Uniform(), with n-step returns"


class Advice(NamedTuple):
    """What to do."""

    verdict: Verdict
    encoder: Encoder
    recommendation: str


def advise(choices: Sequence[Measures], *, discrete_actions: bool, rewards_differ: bool, steps: int) -> Advice:
    """Choose an encoder and say whether graph methods can help."""
    exact = [choice for choice in choices if not isinstance(choice.encoder, Quantized)]
    best = exact[0]
    if len(exact) > 1 and isinstance(exact[1].encoder, ExactBytes) and exact[1].states > best.states:
        best = exact[1]  # the projection took different states for one
    if best.came_back >= ENOUGH_COME_BACK:
        return _states_come_back(best, discrete_actions, rewards_differ, steps)
    grid = _finest_fit([choice for choice in choices if isinstance(choice.encoder, Quantized)])
    returns = f"states do not come back ({best.came_back:.1%} of steps)"
    if best.came_back >= SOME_COME_BACK:
        returns = f"few states come back ({best.came_back:.1%} of steps)"
    if grid is not None and discrete_actions:
        reason = (
            f"{returns}, but cells of a grid do ({grid.came_back:.0%}), and the same action mostly leads to the same "
            f"cell ({grid.agreement:.0%}){'' if grid.end_states else ', though no end was found'}: compare "
            f"values=GraphValues() and encoder={grid.encoder} with plain Prioritized()"
        )
        return Advice("maybe", grid.encoder, reason)
    if best.came_back >= SOME_COME_BACK:
        reason = (
            f"{returns}, so values spread from one episode to another now and then: compare values=GraphValues() with "
            "plain Prioritized()"
        )
        return Advice("maybe", best.encoder, reason)
    reason = f"{returns}, so a graph of them is nothing but the separate episodes: {OTHERWISE}"
    return Advice("no", best.encoder, reason)


def _states_come_back(best: Measures, discrete_actions: bool, rewards_differ: bool, steps: int) -> Advice:
    returns = f"states come back ({best.came_back:.1%} of steps)"
    if not best.end_states and not rewards_differ:
        reason = (
            f"{returns}, but {steps:,} random steps found no end and only one reward, so there is nothing yet for the "
            "graph to spread: inspect more steps, or explore better first"
        )
        return Advice("maybe", best.encoder, reason)
    found = "rewards differ, but no end was found"
    if best.end_states:
        noun = "end was" if best.end_states == 1 else "ends were"
        found = f"{best.end_states:,} {noun} found, which {best.reach_end:.0%} of starts can reach on the graph"
    if not discrete_actions:
        reason = (
            f"{returns} and {found}: Topological() can help with encoder={best.encoder}; graph values need discrete "
            "actions"
        )
        return Advice("maybe", best.encoder, reason)
    return Advice("yes", best.encoder, f"{returns} and {found}: use values=GraphValues() with encoder={best.encoder}")


def _finest_fit(grids: Sequence[Measures]) -> Measures | None:
    """Return the finest grid whose cells come back and behave like states; None if there is none."""
    fits = (grid for grid in grids if grid.came_back >= ENOUGH_COME_BACK and grid.agreement >= ENOUGH_AGREE)
    return next(fits, None)
