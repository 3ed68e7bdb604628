"""The configuration of graph values: targets planned on the stored graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from backsweep.checks import is_number, need_choice, need_fields, need_flags


@dataclass(frozen=True, kw_only=True)
class GraphValues:
    """Plan on the stored transitions and return finished targets.

    The live transitions are a model of the task: for each state and tried action the mean reward, the successors by
    count, and how often the episode terminated. `Replay.renew_values` solves that model:

        Q(s, a) = mean of (reward + discount * V(successor)), without V after a termination
        V(s)    = max over actions of Q(s, a); for untried actions see `untried`

    and a batch then carries ``target = V + max(gap * (Q - V), -floor)``. The best action keeps its value; the others
    are pushed further below it, so that a slightly wrong network still ranks the actions correctly. Where V is clipped
    below Q (see `margin`), the target is Q.

    Parameters
    ----------
    gap
        Factor for the difference between an action's value and the best one; 1 leaves it unchanged.
    floor
        The largest distance of a target below the best action. None: 0.15 of the distance between the bounds, and no
        limit with ``gap=1``.
    untried
        The value of untried actions: ``"network"`` uses `q_values`, clipped to the bounds; ``"never"`` ignores them. A
        state without any tried action, such as the last one before a time limit, always has the network's value.
    margin
        V is clipped to the bounds, widened by this share of their distance on either side. In a loop of stored states
        that pays, V would be that reward forever; where a state does not tell everything there is to know, such a loop
        may be mere chance. 1 clips nothing along one episode, whose rows pay at most the upper bound, as does the
        network's value at their end. None does not clip V. Has no effect with `depth`.
    cautious
        Use the lower of the network's last two answers for a state. Where few states repeat, most values on a path
        come from the network, and the maximum over actions picks its errors at every step: planned values are then
        too high. False uses the last answer. Has no effect with `depth`.
    refresh
        Share of the states evaluated again by the network at each renewal, in turn; new states and states with newly
        tried actions are always evaluated. Less than 1 saves time on large graphs.
    discount
        The discount used in planning, below 1; None takes the replay's `gamma`.
    tolerance
        The solver stops when no value changes by more than this share of the distance between the bounds.
    depth
        Look only this many steps ahead, then use the network's values (Graph Backup); None has no limit.
    most_backups
        Limit on state updates per renewal, as a multiple of the number of states. The next renewal continues with
        the rest.
    noise_limit
        Plan only while noise is at most this; None always plans. Noise is the chance that two transitions with the same
        state and action lead to different states, divided by the mean number of transitions of a state and action:
        high where outcomes are random and seldom repeat. A plan then takes lucky outcomes for certain ones, and TD
        errors are mostly chance. So targets and values are NaN, and `Replay.explore` and `Prioritized` draw uniformly,
        until a later renewal finds less noise.
    """

    gap: float = 30.0
    floor: float | None = None
    untried: Literal["network", "never"] = "network"
    margin: float | None = 1.0
    cautious: bool = True
    refresh: float = 1.0
    discount: float | None = None
    tolerance: float = 1e-5
    depth: int | None = None
    most_backups: float = 100.0
    noise_limit: float | None = 0.22

    def __post_init__(self) -> None:
        need_fields(self, lambda v: is_number(v) and v >= 1, "1 or more", "gap", "most_backups")
        need_fields(
            self,
            lambda v: v is None or (is_number(v) and v >= 0),
            "0 or more, or None",
            *("floor", "margin", "noise_limit"),
        )
        need_choice(self, "untried", "network", "never")
        need_flags(self, "cautious")
        need_fields(self, lambda v: is_number(v) and 1e-6 <= v <= 1, "from 0.000001 to 1", "refresh")
        need_fields(self, lambda v: v is None or (is_number(v) and 0 <= v < 1), "in [0, 1), or None", "discount")
        need_fields(self, lambda v: is_number(v) and v > 0, "above 0", "tolerance")
        whole = "a whole number from 1, or None"
        need_fields(self, lambda v: v is None or (is_number(v) and v == int(v) and v >= 1), whole, "depth")


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return bounds as two numbers, or say what is wrong with them."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise TypeError(f"bounds must be two numbers (lowest, highest), got {bounds!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"bounds must be finite, the lowest first, got {bounds!r}")
    return low, high
