"""How long a batch takes, over the gather floor."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from benchmarks.floors import GatherFloor
from benchmarks.libraries import Wanted, build
from benchmarks.libraries.base import Library
from benchmarks.streams import make_stream
from benchmarks.timing import Block, Effort, compare, timed_calls

UPDATES = ("prioritized", "mixture")


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Fill a replay past its capacity and time `sample` (and `update_priorities`, where there are priorities)."""
    rows, batch = params["rows"], params["batch"]
    shape, dtype = tuple(params["shape"]), params["dtype"]
    stream = make_stream(params["stream"], shape, dtype, states=params["states"])
    replay = build(library, Wanted(stream.frames.space, rows, method=params["method"]))
    replay.fill(stream, rows + rows // 8)
    floor = GatherFloor(rows, shape, dtype, batch)
    gc.collect()
    block = sample_block(replay, params["method"], batch)
    return compare(block, floor.block, Effort(params["calls"], params["seconds"]))


def sample_block(replay: Library, method: str, batch: int) -> Block:
    """Return what times calls of `sample`, each batch let go when the next one has come, as in a training loop."""
    errors = np.abs(np.random.default_rng(2).standard_normal((64, batch))).astype(np.float32)
    turn = 0
    held: Any = None

    def sample() -> None:
        nonlocal held
        held = replay.sample(batch)

    def sample_and_update() -> None:
        nonlocal held, turn
        turn = (turn + 1) % len(errors)
        held = replay.sample_and_update(batch, errors[turn])

    call = sample_and_update if method in UPDATES else sample
    return lambda count: timed_calls(call, count)
