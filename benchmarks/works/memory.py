"""How many bytes a transition takes."""

from __future__ import annotations

import gc
import math
import os
from typing import Any

from benchmarks.libraries import OURS, Wanted, build
from benchmarks.streams import make_stream


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Fill a replay and see how much resident memory it took; in bytes, and in frames of one observation."""
    rows, lanes = params["rows"], params["lanes"]
    frame = math.prod(params["shape"])
    stream = make_stream(params["stream"], tuple(params["shape"]), params["dtype"], lanes, params["states"])
    wanted = Wanted(stream.frames.space, rows, lanes, params["method"], params["variant"])
    # Code that is loaded on first use is no part of the replay.
    rehearsal = build(library, Wanted(stream.frames.space, 64 * lanes, lanes, params["method"], params["variant"]))
    rehearsal.fill(stream, 128)
    rehearsal.sample(8)
    del rehearsal
    gc.collect()
    before = resident_bytes()
    replay = build(library, wanted)
    replay.fill(stream, -(-rows // lanes))
    gc.collect()
    taken = (resident_bytes() - before) / rows
    numbers = {"bytes": taken, "frames": taken / frame, "frame_bytes": float(frame), "rows": float(rows)}
    if library == OURS:
        inner: Any = replay
        numbers["own_count_bytes"] = inner.replay.nbytes / rows
        numbers["distinct_frames"] = float(inner.replay.stats()["distinct_frames"])
    return numbers


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
