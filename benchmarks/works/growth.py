"""How cost grows with rows, batch, observation size and lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.floors import SMALL_RING, GatherFloor, RowStoreFloor
from benchmarks.libraries import Wanted, build
from benchmarks.streams import make_stream
from benchmarks.timing import Effort, compare
from benchmarks.works.adding import add_block
from benchmarks.works.sampling import sample_block

ROWS, SHAPE, BATCH = 20_000, (40, 40, 3), 64
FILL_LANES = 16


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Measure the same work at several values of one thing; names of numbers are ``value number``."""
    kinds: dict[str, Callable[..., dict[str, float]]] = {"rows": _rows, "batch": _batch, "size": _size, "lanes": _lanes}
    measure = kinds[params["kind"]]
    numbers: dict[str, float] = {}
    for value in params["values"]:
        label = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        result = measure(library, params, value)
        numbers.update({f"{label} {name}": result[name] for name in ("ratio", "median_us", "p99_us")})
    return numbers


def _sampled(
    library: str, params: dict[str, Any], rows: int, shape: tuple[int, ...], dtype: str, batch: int
) -> dict[str, float]:
    stream = make_stream(params["stream"], shape, dtype, FILL_LANES)
    replay = build(library, Wanted(stream.frames.space, rows, FILL_LANES, params["method"]))
    replay.fill(stream, rows // FILL_LANES + 1)
    floor = GatherFloor(rows, shape, dtype, batch)
    effort = Effort(params["calls"], params["seconds"])
    return compare(sample_block(replay, params["method"], batch), floor.block, effort)


def _rows(library: str, params: dict[str, Any], rows: int) -> dict[str, float]:
    return _sampled(library, params, rows, (4,), "float32", BATCH)


def _batch(library: str, params: dict[str, Any], batch: int) -> dict[str, float]:
    return _sampled(library, params, ROWS, SHAPE, "uint8", batch)


def _size(library: str, params: dict[str, Any], shape: list[int]) -> dict[str, float]:
    return _sampled(library, params, ROWS, tuple(shape), "uint8", BATCH)


def _lanes(library: str, params: dict[str, Any], lanes: int) -> dict[str, float]:
    rows = ROWS - ROWS % lanes
    stream, floor_stream = (make_stream(params["stream"], SHAPE, "uint8", lanes) for _ in range(2))
    replay = build(library, Wanted(stream.frames.space, rows, lanes, params["method"]))
    replay.fill(stream, rows // lanes + 1)
    effort = Effort(params["calls"], params["seconds"])
    return compare(add_block(replay, stream), RowStoreFloor(SMALL_RING, floor_stream).block, effort, per=lanes)
