"""Where a return lies between the worst and the best there is."""

from __future__ import annotations


def normalised_return(value: float, bounds: tuple[float, float]) -> float:
    """Return `value` between the bounds as a share: 0 at the worst return there is, 1 at the best.

    Examples
    --------
    >>> normalised_return(-3.0, (-360.0, 354.0))
    0.5
    """
    low, high = bounds
    return (value - low) / (high - low) if high > low else 0.0
