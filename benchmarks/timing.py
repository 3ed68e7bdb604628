"""Timing in short, alternating blocks.

A busy machine slows everything down for a while. Two things that are timed in turns, a few milliseconds each, are
slowed down alike, so their ratio holds even where the times themselves do not:

    warm-up | subject x n | floor x n | subject x n | floor x n | ...
              |_______ one round _____|
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Block = Callable[[int], list[int]]
"""Makes a number of calls and returns the nanoseconds of each, without preparing their arguments."""

LEAST_ROUNDS = 15


@dataclass(frozen=True)
class Effort:
    """How many calls are measured."""

    calls: int
    """Calls in a block."""
    seconds: float
    """How long rounds are repeated."""
    least_rounds: int = LEAST_ROUNDS


def clock_cost() -> float:
    """Return the nanoseconds of reading the clock twice."""
    clock = time.perf_counter_ns
    return float(np.median([-(clock() - clock()) for _ in range(2000)]))


def timed_calls(call: Callable[[], object], count: int) -> list[int]:
    """Return the nanoseconds of each of `count` calls."""
    clock = time.perf_counter_ns
    times = []
    for _ in range(count):
        start = clock()
        call()
        times.append(clock() - start)
    return times


def compare(subject: Block, floor: Block, effort: Effort, per: int = 1) -> dict[str, float]:
    """Time both in turns; return medians and 99th percentiles in microseconds, and the ratio of medians.

    Parameters
    ----------
    subject, floor
        What is measured, and what it is measured against.
    effort
        How much is measured.
    per
        Transitions in a call: times are divided by it.
    """
    subject(effort.calls)
    floor(effort.calls)
    cost = clock_cost()
    subject_times: list[NDArray[np.float64]] = []
    floor_times: list[NDArray[np.float64]] = []
    end = time.perf_counter() + effort.seconds
    while len(subject_times) < effort.least_rounds or time.perf_counter() < end:
        subject_times.append((np.array(subject(effort.calls)) - cost) / 1000 / per)
        floor_times.append((np.array(floor(effort.calls)) - cost) / 1000 / per)
    ratios = [np.median(ours) / np.median(theirs) for ours, theirs in zip(subject_times, floor_times, strict=True)]
    ours, theirs = np.concatenate(subject_times), np.concatenate(floor_times)
    return {
        "ratio": float(np.median(ratios)),
        "ratio_low": float(np.quantile(ratios, 0.25)),
        "ratio_high": float(np.quantile(ratios, 0.75)),
        "median_us": float(np.median(ours)),
        "p99_us": float(np.quantile(ours, 0.99)),
        "mean_us": float(np.mean(ours)),
        "floor_median_us": float(np.median(theirs)),
        "floor_p99_us": float(np.quantile(theirs, 0.99)),
        "calls": float(len(ours)),
    }
