"""Fills batches that a sampler cannot fill yet."""

from __future__ import annotations

from backsweep.jit.random_streams import random_word
from backsweep.samplers.base import LiveSampler
from backsweep.store import store_kernels
from backsweep.types import Rows


def fill_up(row: Rows, filled: int, fallback: str, sampler: LiveSampler, why: str) -> None:
    """Fill ``row[filled:]`` with uniform rows, or raise, as the sampler's configuration says."""
    if filled == len(row):
        return
    if fallback == "error":
        raise RuntimeError(f"{type(sampler).__name__}: {why}, and fallback='error' was asked for")
    store_kernels.draw_uniform(
        random_word(sampler.generator), sampler.experience.total, len(sampler.experience), row[filled:]
    )
