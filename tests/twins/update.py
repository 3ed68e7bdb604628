"""The plain-Python twins of `agent/learner/update_kernels.py` and of `successors_kernels.py`, for one run."""

from __future__ import annotations

import math
from collections.abc import Sequence

Numbers = Sequence[float]


def needed_successors(discount: Numbers, given: Numbers, share: float) -> list[int]:
    """Return the rows whose target depends on their successor."""
    return [
        row
        for row, (left, target) in enumerate(zip(discount, given, strict=True))
        if left != 0 and (share != 1 or math.isnan(target))
    ]


def td_errors(
    values: Sequence[Numbers],
    next_target: Sequence[Numbers],
    action: Sequence[int],
    reward: Numbers,
    discount: Numbers,
    known: Numbers | None,
    share: float,
) -> tuple[list[float], list[float], list[int]]:
    """Return each row's value, its target, and the best action of its successor."""
    size = len(action)
    best = [max(range(len(row)), key=lambda place, row=row: row[place]) for row in values[size:]]  # type: ignore[misc]
    targets = [reward[row] + discount[row] * next_target[row][best[row]] for row in range(size)]
    if known is not None:
        targets = [
            target if math.isnan(given) else share * given + (1.0 - share) * target
            for given, target in zip(known, targets, strict=True)
        ]
    return [values[row][action[row]] for row in range(size)], targets, best


def huber_and_statistics(
    error: Numbers, weight: Numbers, chosen: Numbers, target: Numbers, action: Sequence[int], actions: int
) -> tuple[list[list[float]], list[float]]:
    """Return the gradient (rows, actions) of the weighted Huber loss, and the statistics."""
    size = len(error)
    gradient = [[0.0] * actions for _ in range(size)]
    for row in range(size):
        gradient[row][action[row]] = max(-1.0, min(1.0, error[row])) * weight[row] / size
    loss = sum(w * (0.5 * e * e if abs(e) <= 1 else abs(e) - 0.5) for e, w in zip(error, weight, strict=True))
    means = [loss, sum(map(abs, error)), sum(chosen), sum(target)]
    effective = sum(weight) ** 2 / sum(w * w for w in weight)
    return gradient, [*(total / size for total in means), effective]
