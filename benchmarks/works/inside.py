"""Where the time of `add`, `sample` and `update_priorities` goes inside backsweep.

Functions are wrapped by stopwatches, each of which counts its own time without that of the watched functions that it
calls. A watch costs time itself; what it costs is measured on an empty function and taken off. Names that a later
version of the library no longer has are passed over: their time then shows in whoever calls them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

from backsweep.store.ingest_kernels import add_staged
from backsweep.store.ring_kernels import SKIP
from benchmarks.libraries.base import Wanted
from benchmarks.libraries.ours import Ours
from benchmarks.streams import make_stream
from benchmarks.timing import clock_cost, timed_calls

METHODS = (
    ("", "add", "add: locking, calling, telling the sampler"),
    (
        "",
        "_add_kernel",
        "add: the kernel (take arguments, find or store observations, project new ones, row, graph)",
    ),
    ("", "sample", "sample: locking, checking, making the batch"),
    ("_sampler", "pick", "sample: calling the samplers"),
    ("_store", "read", "sample: calling the store"),
    ("_store.outputs", "take", "sample: finding output arrays"),
    ("", "update_priorities", "update: checking and calling"),
    ("_sampler", "update", "update: calling the sampler"),
)
KERNELS = (
    ("backsweep.samplers.sum_tree_kernels", "set_range", "sample: priorities of new rows"),
    ("backsweep.sweep.sweep_kernels", "sweep_rows", "sample: sweep kernel"),
    ("backsweep.samplers.sum_tree_kernels", "draw_prioritized", "sample: priority kernel"),
    ("backsweep.store.reading_kernels", "read_rows", "sample: copying kernel"),
    ("backsweep.samplers.sum_tree_kernels", "update_priorities", "update: priority kernel"),
)


class Stopwatches:
    """The own times of every call, per name."""

    def __init__(self) -> None:
        self.times: dict[str, list[int]] = defaultdict(list)
        self._inner = [0]

    def median(self, name: str) -> float:
        """Return the nanoseconds of a typical call."""
        return float(np.median(self.times[name]))

    def watch(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return the function with a stopwatch around it."""
        clock, inner, times = time.perf_counter_ns, self._inner, self.times[name]

        def watched(*args: Any, **kwargs: Any) -> Any:
            outer = inner[0]
            inner[0] = 0
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                taken = clock() - start
                times.append(taken - inner[0])
                inner[0] = outer + taken

        return watched


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Return microseconds per call of `add` or `sample`, part by part."""
    lanes, batch, count = params["lanes"], params["batch"], params["calls"]
    stream = make_stream(params["stream"], tuple(params["shape"]), params["dtype"], lanes, params["states"])
    ours = Ours(Wanted(stream.frames.space, params["rows"], lanes, params["method"]))
    ours.fill(stream, params["rows"] // lanes + 1)
    errors = np.abs(np.random.default_rng(2).standard_normal(batch)).astype(np.float32)
    for _ in range(10):
        ours.sample_and_update(batch, errors)
    entering = _entering(ours.replay, count)
    watches = Stopwatches()
    _put_on(watches, ours.replay)
    held: Any = None
    for transition in stream.take(count):
        ours.replay.add(*transition)
    for _ in range(count):
        held = ours.replay.sample(batch)
        ours.replay.update_priorities(held.row, errors)
    own_cost, outer_cost = _costs()
    numbers = {}
    for name, times in watches.times.items():
        if times:
            numbers[name] = len(times) / count * max(watches.median(name) - own_cost, 0.0) / 1000
    # What a watched function adds to its caller beyond the time it reports.
    for caller, share in _inner_calls(watches, count).items():
        numbers[caller] = max(numbers[caller] - share * outer_cost / 1000, 0.0)
    return dict(sorted({**numbers, **entering}.items()))


def _entering(replay: Any, count: int) -> dict[str, float]:
    """Return what it costs to call the largest kernels when there is nothing to do: handing over their arrays."""
    store = replay._store
    no_rows = np.empty(0, np.int64)
    calls: dict[str, Callable[[], object]] = {
        "add: entering the kernel (part of it)": lambda: add_staged(*replay._tables),
        "sample: entering the copying kernel (part of it)": lambda: store.read(no_rows, 1, 0.99),
    }
    numbers = {}
    for name, call in calls.items():
        try:
            store.staging.flags[:] = SKIP
            numbers[name] = (float(np.median(timed_calls(call, count))) - clock_cost()) / 1000
        except (AttributeError, TypeError, ValueError):
            continue
    return numbers


def _put_on(watches: Stopwatches, replay: Any) -> None:
    for module_name, attribute, name in KERNELS:
        module = import_module(module_name)
        if hasattr(module, attribute):
            setattr(module, attribute, watches.watch(getattr(module, attribute), name))
    for path, attribute, name in METHODS:
        try:
            owner = attrgetter(path)(replay) if path else replay
            setattr(owner, attribute, watches.watch(getattr(owner, attribute), name))
        except AttributeError:
            continue


def _costs() -> tuple[float, float]:
    """Return what a stopwatch adds to the time it reports itself, and to the time that its caller reports."""
    watches = Stopwatches()
    inner = watches.watch(lambda: None, "inner")

    def call_inner() -> None:
        for _ in range(100):
            inner()

    outer = watches.watch(call_inner, "outer")
    for _ in range(200):
        outer()
    return watches.median("inner"), watches.median("outer") / 100


_CALLERS = {
    "add: locking, calling, telling the sampler": (
        "add: the kernel (take arguments, find or store observations, project new ones, row, graph)",
    ),
    "sample: locking, checking, making the batch": ("sample: calling the samplers", "sample: calling the store"),
    "sample: calling the samplers": ("sample: sweep kernel", "sample: priority kernel"),
    "sample: calling the store": ("sample: copying kernel", "sample: finding output arrays"),
    "update: checking and calling": ("update: calling the sampler",),
    "update: calling the sampler": ("update: priority kernel",),
}


def _inner_calls(watches: Stopwatches, count: int) -> dict[str, float]:
    return {
        caller: sum(len(watches.times[name]) for name in inner) / count
        for caller, inner in _CALLERS.items()
        if watches.times.get(caller)
    }
