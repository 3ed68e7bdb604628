"""The fastest tile sizes of the kernels of `agent.learner.triton`, for a task's network on this GPU.

    python -m benchmarks.tiles --runs 13 25 50 --out tiles.jsonl
    python -m benchmarks.tiles --task Sokoban --sites hidden --runs 5 25

For every place where a kernel is launched, candidates are timed on random data and compared with the current tiles; one
whose results differ from that is reported and left out. `agent/learner/triton/tiles.py` holds what came of it.
Candidates are compiled first, by several processes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.optimisers import OptimiserSettings
from benchmarks.learner import TASKS, Task

try:
    from backsweep.agent.learner.triton import FusedNetwork
    from backsweep.agent.learner.triton import tiles as cuts
    from backsweep.agent.learner.triton.adam import AdamStep, adam_constants
    from backsweep.agent.learner.triton.tiles import Tiles
except ModuleNotFoundError as missing:
    raise SystemExit(f"benchmarks.tiles needs a GPU and Triton: {missing}") from missing

KEPT_ROWS = 20_000
SAME = 4e-3  # what two cuts' results may differ by, of the largest number: half precision, another order of sums
COMPILED_WITH = 4  # runs: kernels are the same for any number
Some: TypeAlias = int | tuple[int, ...]


@dataclass(frozen=True)
class Site:
    """A place where a kernel is launched."""

    name: str
    chooser: str
    """Which function of `fused.tiles` chooses its tiles."""
    candidates: tuple[Tiles, ...]


def tiles(m: Some, n: Some, k: Some, warps: Some, stages: Some, repeats: Some = 0) -> tuple[Tiles, ...]:
    """Return tiles with all combinations of some numbers."""
    axes = [axis if isinstance(axis, tuple) else (axis,) for axis in (m, n, k, warps, stages, repeats)]
    return tuple(Tiles(*numbers) for numbers in product(*axes))


SITES = (
    Site(
        "first convolution",
        "first_forward_tiles",
        tiles(128, 32, 16, 4, (1, 2, 3), (1, 2, 4))
        + tiles(64, 32, 16, 4, 2, (2, 4))
        + tiles(256, 32, 16, 8, 1, (1, 2)),
    ),
    Site(
        "second convolution",
        "forward_tiles",
        tiles((64, 128), 64, 64, 4, (2, 3))
        + tiles((64, 128), 64, (64, 128), 4, 1, (2, 3, 5))
        + tiles(256, 64, 64, 8, 2),
    ),
    Site(
        "hidden layer",
        "forward_tiles",
        tiles((32, 64), (32, 64), (64, 128), 4, (2, 3, 4)) + tiles(64, (64, 128), (64, 128), 8, (2, 3)),
    ),
    Site("last layer", "forward_tiles", tiles((16, 32, 64), 16, (64, 128), (2, 4), (2, 3))),
    Site("act: first convolution", "first_forward_tiles", tiles((32, 64, 128), (16, 32), 16, 4, 1, 1)),
    Site("act: second convolution", "forward_tiles", tiles(16, (16, 32), (128, 256), 4, (2, 3))),
    Site("act: hidden layer", "forward_tiles", tiles(16, (16, 32, 64), (64, 128), (2, 4), (3, 4))),
    Site("second convolution, back", "input_gradient_tiles", tiles((64, 128), 64, 32, (4, 8), (1, 2), (0, 3, 7))),
    Site("hidden layer, back", "input_gradient_tiles", tiles((32, 64), 64, (32, 64), 4, (2, 3))),
    Site("second convolution's weights", "weight_gradient_tiles", tiles((32, 64), 64, (64, 128), (4, 8), (2, 3))),
    Site(
        "hidden layer's step",
        "weight_step_tiles",
        tiles((32, 64), (32, 64, 128), (16, 32, 64), (4, 8), 1) + tiles((32, 64), 256, 16, (4, 8), 1),
    ),
    Site("first convolution's weights", "first_weight_gradient_tiles", tiles((64, 128), 32, (16, 32), (4, 8), (1, 2))),
)


class Workbench:
    """A network of some runs with everything that its kernels take."""

    def __init__(self, task: Task, runs: int) -> None:
        device = torch.device("cuda")
        network, batch = task.network, task.batch_size
        kept = DeviceObservations(KEPT_ROWS, network.input_shape, np.uint8, device)
        self.fused = FusedNetwork(network, kept)
        kept.rows.random_(0, 256)
        flat = network.initial([np.random.default_rng(0)], torch.float32).to(device).repeat(runs, 1)
        parameters, self.gradients = network.layout.views(flat), network.layout.views(torch.zeros_like(flat))
        layers, half = self.fused.layers, torch.float16
        self._start = flat
        self._stepped = [torch.empty_like(flat) for _ in range(3)]
        stepped, mean, square = (network.layout.views(numbers) for numbers in self._stepped)
        step = AdamStep(adam_constants(OptimiserSettings()), mean, square, torch.ones(2, device=device))

        def random(*shape: int, dtype: torch.dtype = half) -> torch.Tensor:
            return torch.rand(*shape, device=device, dtype=dtype)

        rows = torch.randint(0, KEPT_ROWS, (runs, 2 * batch), device=device)
        seen = rows[:, :1].contiguous()
        first, second = network.stages[0], network.stages[1]
        after_first = random(runs, 2 * batch, first.places * first.outputs) - 0.5
        hidden = random(runs, 2 * batch, network.linear[-1], dtype=torch.float32)
        into_hidden = random(runs, 2 * batch, network.widths[0])
        back_first = random(runs, batch, first.places * first.outputs)
        back_second = random(runs, batch, second.places * second.outputs)
        back_hidden = random(runs, batch, network.linear[0])
        undo = torch.ones(runs, device=device)
        net = self.fused
        self._calls: dict[str, Callable[[], torch.Tensor | None]] = {
            "first convolution": lambda: net._forward_first(layers[0], parameters, rows, half),
            "second convolution": lambda: net._forward_layer(layers[1], parameters, after_first, half),
            "hidden layer": lambda: net._forward_layer(layers[-2], parameters, into_hidden, torch.float32),
            "last layer": lambda: net._forward_layer(layers[-1], parameters, hidden, torch.float32),
            "act: first convolution": lambda: net._forward_first(layers[0], parameters, seen, half),
            "act: second convolution": lambda: net._forward_layer(layers[1], parameters, after_first[:, :1], half),
            "act: hidden layer": lambda: net._forward_layer(layers[-2], parameters, into_hidden[:, :1], torch.float32),
            "second convolution, back": lambda: net._input_gradient(
                layers[1], parameters, after_first[:, :batch], back_second
            ),
            "hidden layer, back": lambda: net._input_gradient(
                layers[-2], parameters, into_hidden[:, :batch], back_hidden
            ),
            "second convolution's weights": lambda: net._weight_gradient(
                layers[1], after_first[:, :batch], back_second, undo, self.gradients
            ),
            "hidden layer's step": lambda: net._weight_step(
                layers[-2], into_hidden[:, :batch], back_hidden, undo, stepped, step
            ),
            "first convolution's weights": lambda: net._first_weight_gradient(
                layers[0], rows[:, :batch], back_first, undo, self.gradients
            ),
        }

    def launch(self, site: str) -> torch.Tensor:
        """Run a site's kernel; return what it wrote."""
        self._stepped[0].copy_(self._start)
        for moment in self._stepped[1:]:
            moment.zero_()
        found = self._calls[site]()
        if found is not None:
            return found
        if site == "hidden layer's step":
            return torch.cat(self._stepped)
        layer = "conv0" if site.startswith("first") else "conv1"
        return torch.cat([self.gradients[f"{layer}.weight"].flatten(), self.gradients[f"{layer}.bias"].flatten()])

    def microseconds(self, site: str) -> float:
        """Return how long a site's kernel takes, from ten in a row."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            self._calls[site]()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(10):
                self._calls[site]()
        times = []
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(100 * begin.elapsed_time(end))
        return float(min(times))


@contextmanager
def chosen(site: Site, taken: Tiles | None) -> Iterator[None]:
    """Use the given tiles for a site's kernel, or the default ones."""
    usual = getattr(cuts, site.chooser)
    if taken is not None:
        setattr(cuts, site.chooser, lambda *_: taken)
    try:
        yield
    finally:
        setattr(cuts, site.chooser, usual)


@lru_cache(maxsize=1)
def _small_workbench(task: int) -> Workbench:
    return Workbench(TASKS[task], COMPILED_WITH)


def compile_one(task: int, place: tuple[int, int]) -> str | None:
    """Compile a candidate in its own process; return its error."""
    site = SITES[place[0]]
    try:
        with chosen(site, site.candidates[place[1]]):
            _small_workbench(task).launch(site.name)
        torch.cuda.synchronize()
    except Exception as error:  # mostly too much shared memory; the other candidates continue
        return f"{site.name} {astuple(site.candidates[place[1]])}: {error}"
    return None


def main() -> None:
    """Print the current tiles of every site, and faster ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[13, 25, 50])
    names = [task.name for task in TASKS]
    parser.add_argument("--task", choices=names, default=names[0])
    parser.add_argument("--sites", nargs="+", default=[""], help="only sites whose names contain one of these")
    parser.add_argument("--jobs", type=int, default=8, help="processes that compile")
    parser.add_argument("--out", type=Path, help="write all times here as JSON lines")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this needs a GPU")
    task = names.index(asked.task)
    sites = [(number, site) for number, site in enumerate(SITES) if any(part in site.name for part in asked.sites)]
    places = [(number, place) for number, site in sites for place in range(len(site.candidates))]
    began = time.perf_counter()
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        wrong = dict(zip(places, pool.map(partial(compile_one, task), places, chunksize=2), strict=True))
    for reason in filter(None, wrong.values()):
        print(f"left out: {reason}")
    print(f"{len(places)} candidates compiled in {time.perf_counter() - began:.0f} s", flush=True)
    for runs in asked.runs:
        bench = Workbench(TASKS[task], runs)
        for number, site in sites:
            expected = bench.launch(site.name).float().clone()
            rows = [("as it is", bench.microseconds(site.name))]
            for place, candidate in enumerate(site.candidates):
                if wrong[number, place]:
                    continue
                with chosen(site, candidate):
                    off = (bench.launch(site.name).float() - expected).abs().max() / expected.abs().max()
                    if not off < SAME:
                        print(f"left out: {site.name} {astuple(candidate)} differs by {float(off):.1%}")
                        continue
                    rows.append((str(astuple(candidate)), bench.microseconds(site.name)))
            best = sorted(rows[1:], key=lambda row: row[1])[:3]
            shown = ", ".join(f"{name} {us:.1f}" for name, us in best)
            print(f"{runs:4} runs  {site.name:29} as it is {rows[0][1]:.1f} us; {shown}", flush=True)
            if asked.out is not None:
                with open(asked.out, "a") as file:
                    for name, us in rows:
                        line = {"site": site.name, "runs": runs, "tiles": name, "microseconds": us}
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
