"""A live sampler as numbers and addresses: borrowed from the object while kernels use it, then written back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes
from backsweep.jit.random_streams import generator_words, restore_generator_words
from backsweep.samplers.base import LiveSampler
from backsweep.samplers.episodic_backward import LiveEpisodicBackward
from backsweep.samplers.mixture import LiveMixture
from backsweep.samplers.prioritized import LivePrioritized
from backsweep.samplers.topological import LiveTopological
from backsweep.samplers.uniform import LiveUniform

KINDS: dict[type[LiveSampler], int] = {
    LiveUniform: codes.UNIFORM,
    LivePrioritized: codes.PRIORITIZED,
    LiveTopological: codes.SWEEP,
    LiveEpisodicBackward: codes.EPISODES,
}


def parts_of(sampler: LiveSampler) -> list[LiveSampler] | None:
    """Return the parts of a sampler, or itself if it has none; None if kernels do not support them."""
    parts = list(sampler.parts) if isinstance(sampler, LiveMixture) else [sampler]
    for part in parts:
        if type(part) not in KINDS or getattr(getattr(part, "config", None), "fallback", "uniform") != "uniform":
            return None
    return parts


def bundle_of(part: LiveSampler) -> tuple[NDArray[Any], ...] | None:
    """Return the arrays that the kernels of a part use in place."""
    if isinstance(part, LivePrioritized):
        return part.tree.bundle
    if isinstance(part, LiveTopological):
        return part.sweep.bundle
    return None


def window_of(part: LiveSampler) -> NDArray[np.int64]:
    """Return the window that a part shuffles its rows in; empty if it does not."""
    return part.window if isinstance(part, LiveTopological) else np.zeros(0, np.int64)


def borrow(
    part: LiveSampler, ints: NDArray[np.int64], floats: NDArray[np.float64], generators: NDArray[np.uint64]
) -> None:
    """Copy the state of a part from the Python object."""
    ints[codes.PART_KIND] = KINDS[type(part)]
    generators[codes.PART_GENERATOR] = generator_words(part.generator)
    if isinstance(part, LivePrioritized):
        part.settle()
        per = part.config
        ints[codes.PART_FLAG] = per.stratified
        ints[codes.PART_BETA_ROWS] = 0 if per.beta_rows is None else per.beta_rows
        clip = math.inf if per.clip is None else per.clip
        floats[:] = per.beta, per.final_beta, per.alpha, per.epsilon, clip, part.largest
    elif isinstance(part, LiveTopological):
        ints[codes.PART_SHUFFLE] = part.config.shuffle
        ints[codes.PART_HELD] = part.held
        generators[codes.PART_SHUFFLE_GENERATOR] = generator_words(part.shuffle_generator)
    elif isinstance(part, LiveEpisodicBackward):
        ints[codes.PART_FLAG] = part.config.timeouts
        ints[codes.PART_CURSOR] = part.cursor
        ints[codes.PART_RUNNING] = part.config.running


def hand_back(
    part: LiveSampler, ints: NDArray[np.int64], floats: NDArray[np.float64], generators: NDArray[np.uint64]
) -> None:
    """Copy the state of a part back to the Python object."""
    restore_generator_words(part.generator, generators[codes.PART_GENERATOR])
    if isinstance(part, LivePrioritized):
        part.note_settled(float(floats[codes.PART_LARGEST]))
    elif isinstance(part, LiveTopological):
        part.held = int(ints[codes.PART_HELD])
        restore_generator_words(part.shuffle_generator, generators[codes.PART_SHUFFLE_GENERATOR])
    elif isinstance(part, LiveEpisodicBackward):
        part.cursor = int(ints[codes.PART_CURSOR])
