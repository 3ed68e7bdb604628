"""How long `add` takes, over the row store floor: while the ring fills, and when it is full."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.floors import SMALL_RING, RowStoreFloor
from benchmarks.libraries import Wanted, build
from benchmarks.libraries.base import Library
from benchmarks.streams import Stream, make_stream
from benchmarks.timing import Block, Effort, compare


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Time `add` into an empty replay, fill it up, and time `add` again with every call overwriting a row."""
    rows, lanes = params["rows"], params["lanes"]
    stream, floor_stream, large_stream = (
        make_stream(params["stream"], tuple(params["shape"]), params["dtype"], lanes, params["states"])
        for _ in range(3)
    )
    replay = build(library, Wanted(stream.frames.space, rows, lanes, params["method"]))
    floor, large = RowStoreFloor(SMALL_RING, floor_stream), RowStoreFloor(rows, large_stream)
    effort = Effort(params["calls"], params["seconds"])
    block = add_block(replay, stream)
    filling = compare(block, floor.block, effort, per=lanes)
    replay.fill(stream, rows // lanes + 1)
    full = compare(block, floor.block, effort, per=lanes)
    over_large = compare(block, large.block, effort, per=lanes)
    numbers = {**full, **{f"filling_{name}": value for name, value in filling.items()}}
    numbers["large_ring_ratio"] = over_large["ratio"]
    numbers["large_ring_floor_median_us"] = over_large["floor_median_us"]
    return numbers


def add_block(replay: Library, stream: Stream) -> Block:
    """Return what times calls of `add`."""

    def block(count: int) -> list[int]:
        clock = time.perf_counter_ns
        times = []
        for prepared in [replay.prepare(transition) for transition in stream.take(count)]:
            start = clock()
            replay.add(prepared)
            times.append(clock() - start)
        return times

    return block
