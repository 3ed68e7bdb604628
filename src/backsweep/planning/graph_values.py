"""The configuration of graph values: targets planned on the stored graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class GraphValues:
    """Plan on the stored transitions and hand out finished targets.

    The live transitions are a model of the task: for each state and tried action the mean reward, the successors by
    count, and how often the episode terminated. `Replay.renew_values` solves that model:

        Q(s, a) = mean of (reward + discount * V(successor)), without V after a termination
        V(s)    = max over actions of Q(s, a); an action that was never tried counts for `untried`

    and a batch then carries ``target = V + max(gap * (Q - V), -floor)``. The best action keeps its value; the others
    are pushed further below it, so that a network that is slightly wrong still ranks the actions right.

    Parameters
    ----------
    gap
        What the difference between an action's value and the best one is multiplied with; 1 leaves it as it is.
    floor
        How far below the best action a target may lie at most. None: 0.15 of the distance between the bounds, and no
        limit with ``gap=1``.
    untried
        What an action that was never tried in a state counts for: ``"network"``, the value that `q_values` gives it,
        clipped to the bounds; or ``"never"``, nothing. A state without any tried action, such as the last one before a
        time limit, always has the network's value.
    refresh
        Share of the states that the network is asked about again at a renewal, in turn; states that are new, or where
        another action has been tried, are always asked about. Less than 1 saves time on large graphs.
    discount
        The discount of planning; None takes the replay's `gamma`. Below 1.
    tolerance
        Values are solved until none changes by more than this share of the distance between the bounds.
    depth
        Look only so many steps ahead along the graph, with the network's values at the end (Graph Backup); None looks
        all the way.
    most_backups
        How many state updates one renewal may take, as a multiple of the number of states. What is left is continued by
        the next renewal.
    """

    gap: float = 30.0
    floor: float | None = None
    untried: Literal["network", "never"] = "network"
    refresh: float = 1.0
    discount: float | None = None
    tolerance: float = 1e-5
    depth: int | None = None
    most_backups: float = 100.0

    def __post_init__(self) -> None:
        _check_number("gap", self.gap, lambda gap: gap >= 1, "1 or more")
        if self.floor is not None:
            _check_number("floor", self.floor, lambda floor: floor >= 0, "0 or more, or None")
        if self.untried not in ("network", "never"):
            raise ValueError(f"untried must be 'network' or 'never', got {self.untried!r}")
        _check_number("refresh", self.refresh, lambda refresh: 0 < refresh <= 1, "in (0, 1]")
        if self.discount is not None:
            _check_number("discount", self.discount, lambda discount: 0 <= discount < 1, "in [0, 1), or None")
        _check_number("tolerance", self.tolerance, lambda tolerance: tolerance > 0, "above 0")
        if self.depth is not None:
            whole = "a whole number from 1, or None"
            _check_number("depth", self.depth, lambda depth: depth == int(depth) and depth >= 1, whole)
        _check_number("most_backups", self.most_backups, lambda most: most >= 1, "1 or more")


def _check_number(name: str, value: Any, is_right: Any, expected: str) -> None:
    number = not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value)
    if not number or not is_right(value):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
