"""Returns on a scale from the worst to the best."""

from __future__ import annotations


def normalised_return(value: float, bounds: tuple[float, float]) -> float:
    """Return `value` on a scale from 0, the worst return, to 1, the best.

    Examples
    --------
    >>> normalised_return(-3.0, (-360.0, 354.0))
    0.5
    """
    low, high = bounds
    return (value - low) / (high - low) if high > low else 0.0
