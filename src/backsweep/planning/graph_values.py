"""The configuration of graph values: targets planned on the stored graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class GraphValues:
    """Plan on the stored transitions and return finished targets.

    The live transitions are a model of the task: for each state and tried action the mean reward, the successors by
    count, and how often the episode terminated. `Replay.renew_values` solves that model:

        Q(s, a) = mean of (reward + discount * V(successor)), without V after a termination
        V(s)    = max over actions of Q(s, a); for untried actions see `untried`

    and a batch then carries ``target = V + max(gap * (Q - V), -floor)``. The best action keeps its value; the others
    are pushed further below it, so that a slightly wrong network still ranks the actions correctly.

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
