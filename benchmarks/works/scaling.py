"""What a hundred times as many rows cost: the same sampler over a small and a large replay, in turns."""

from __future__ import annotations

import gc
from typing import Any

from benchmarks.libraries import Wanted, build
from benchmarks.libraries.base import Library
from benchmarks.streams import make_stream
from benchmarks.timing import Effort, compare
from benchmarks.works.sampling import sample_block

LANES = 16  # fills faster


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Time a batch from the large replay over one from the small replay."""
    small, large = (_filled(library, params, rows) for rows in (params["small_rows"], params["rows"]))
    gc.collect()
    method, batch = params["method"], params["batch"]
    effort = Effort(params["calls"], params["seconds"])
    return compare(sample_block(large, method, batch), sample_block(small, method, batch), effort)


def _filled(library: str, params: dict[str, Any], rows: int) -> Library:
    stream = make_stream(params["stream"], tuple(params["shape"]), params["dtype"], LANES, params["states"])
    replay = build(library, Wanted(stream.frames.space, rows, LANES, params["method"]))
    replay.fill(stream, rows // LANES + 1)
    return replay
