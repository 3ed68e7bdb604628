"""A recommendation in one sentence, with its reason, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from backsweep.encoding import Encoder, ExactBytes, Quantized
from backsweep.inspection.measures import Measures
from backsweep.planning import GraphValues

Verdict = Literal["yes", "maybe", "no"]

MOSTLY_REPEAT = 0.5
"""With at least this share of steps to known states, episodes share most of their states."""
SOME_REPEAT = 0.1
ENOUGH_AGREE = 0.65
"""With at least this share, a cell of a grid is like a state: the same action mostly leads to the same cell."""


class Advice(NamedTuple):
    """A recommendation."""

    verdict: Verdict
    encoder: Encoder
    recommendation: str


def advise(
    choices: Sequence[Measures], *, discrete_actions: bool, rewards_differ: bool, every_end_pays: bool, steps: int
) -> Advice:
    """Choose an encoder and decide whether graph methods can help.

    Parameters
    ----------
    choices
        What was measured with each encoder.
    discrete_actions
        Whether actions are discrete.
    rewards_differ
        Whether there was more than one reward.
    every_end_pays
        Whether episodes terminated, all with a reward above 0 and above that of an average step.
    steps
        The number of steps.
    """
    exact = [choice for choice in choices if not isinstance(choice.encoder, Quantized)]
    best = exact[0]
    if len(exact) > 1 and isinstance(exact[1].encoder, ExactBytes) and exact[1].states > best.states:
        best = exact[1]  # the projection merges different states
    limit = GraphValues().noise_limit
    assert limit is not None
    if best.noise > limit:
        reason = (
            f"only {best.agreement:.0%} of repeated moves agree, and states repeat too seldom ({best.repeated:.1%} of "
            f"steps) to average over chance (noise {best.noise:.2f}, more than {limit:g}), which planning would take "
            "for skill: use Uniform()"
        )
        return Advice("no", best.encoder, reason)
    if best.repeated >= MOSTLY_REPEAT:
        return _states_repeat(best, discrete_actions, rewards_differ, every_end_pays, steps)
    grid = _finest_fit([choice for choice in choices if isinstance(choice.encoder, Quantized)])
    returns = f"states do not repeat ({best.repeated:.1%} of steps)"
    if best.repeated >= SOME_REPEAT:
        returns = f"few states repeat ({best.repeated:.1%} of steps)"
    if grid is not None and discrete_actions:
        reason = (
            f"{returns}, but cells of a grid do ({grid.repeated:.0%}), and the same action mostly leads to the same "
            f"cell ({grid.agreement:.0%}){'' if grid.end_states else ', though no end was found'}: compare "
            f"values=GraphValues() and encoder={grid.encoder} with plain Prioritized()"
        )
        return Advice("maybe", grid.encoder, reason)
    if best.repeated >= SOME_REPEAT:
        reason = (
            f"{returns}, so values sometimes spread between episodes: compare values=GraphValues() with plain "
            "Prioritized()"
        )
        return Advice("maybe", best.encoder, reason)
    apart = f"{returns}, so the graph consists of separate episodes"
    if discrete_actions:
        reason = (
            f"{apart}, and values planned on it are much like n-step returns: compare values=GraphValues() with "
            "n-step returns"
        )
        return Advice("maybe", best.encoder, reason)
    reason = f"{apart}, and graph values need discrete actions: use Prioritized() or Uniform(), with n-step returns"
    return Advice("no", best.encoder, reason)


def _states_repeat(
    best: Measures, discrete_actions: bool, rewards_differ: bool, every_end_pays: bool, steps: int
) -> Advice:
    returns = f"states repeat ({best.repeated:.1%} of steps)"
    if not best.end_states and not rewards_differ:
        reason = (
            f"{returns}, but {steps:,} random steps found no end and only one reward, so the graph has no "
            "values to spread yet: inspect more steps, or explore better first"
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
    # Sweeps start at ends. They help where ends are goals, most on Sokoban, and hurt where most are failures (lava).
    sweeps = (
        ". Every end paid, so compare Prioritized() with mostly swept rows: "
        "Mixture([(0.8, Topological(trees='separate')), (0.2, Prioritized())]), 'backsweep train --eta 0.2'"
    )
    reason = f"{returns} and {found}: use values=GraphValues() with encoder={best.encoder}"
    return Advice("yes", best.encoder, reason + (sweeps if every_end_pays else ""))


def _finest_fit(grids: Sequence[Measures]) -> Measures | None:
    """Return the finest grid whose cells repeat and behave like states; None if there is none."""
    fits = (grid for grid in grids if grid.repeated >= MOSTLY_REPEAT and grid.agreement >= ENOUGH_AGREE)
    return next(fits, None)
