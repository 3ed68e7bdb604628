"""The cells to measure (each a process) and the rows of the table made from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.libraries import OURS, PEERS

OBS40 = {"shape": (40, 40, 3), "dtype": "uint8", "rows": 100_000, "batch": 64}
OBS84 = {"shape": (84, 84, 3), "dtype": "uint8", "rows": 50_000, "batch": 32}
SIZES = {"obs40": OBS40, "obs84": OBS84}
STREAMS = {"fresh": "no state comes twice", "grid": "10k states"}
METHODS = {
    "uniform": ("`Uniform` sample", 1.1),
    "prioritized": ("`Prioritized` sample + update", 1.6),
    "topological": ("`Topological` sample", 1.3),
    "mixture": ("`Mixture` of both, sample + update", 1.8),
    "episodic": ("`EpisodicBackward` sample", None),
}
VARIANTS = (
    ("cpprb", ""),
    ("cpprb", "next_of"),
    ("stable-baselines3", ""),
    ("stable-baselines3", "optimize_memory_usage"),
    ("tianshou", ""),
    ("tianshou", "ignore_obs_next"),
    ("torchrl", ""),
)


@dataclass(frozen=True)
class Cell:
    """One thing measured of one library."""

    name: str
    family: str
    library: str
    params: dict[str, Any]
    quick: bool = False
    """Whether a smoke run includes it."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a number of one of our cells, its target, and the peers' cells."""

    work: str
    cell: str
    number: str = "ratio"
    target: float | None = None
    unit: str = "x"
    peers: tuple[str, ...] = field(default=())
    at_most: str = ""
    """A peer's cell whose number is the target."""


def plan() -> tuple[list[Cell], list[Row]]:
    """Return everything, in the order in which it is run and shown."""
    cells: list[Cell] = []
    rows: list[Row] = []
    for part in (_sampling, _adding, _scaling, _memory, _startup, _saving, _growth, _inside):
        more_cells, more_rows = part()
        cells += more_cells
        rows += more_rows
    return cells, rows


def _sampling() -> tuple[list[Cell], list[Row]]:
    cells, rows = [], []
    for size, shape in SIZES.items():
        base = {**shape, "states": 10_000, "calls": 40, "seconds": 2.0}
        for method, (title, target) in METHODS.items():
            kind = "prioritized" if method in ("prioritized", "mixture") else "uniform"
            peers = tuple(f"sample/{size}/{kind}/{peer}" for peer in PEERS)
            for stream, says in STREAMS.items():
                if (size, stream) == ("obs84", "grid"):
                    continue
                name = f"sample/{size}/{method}/{stream}"
                params = {**base, "stream": stream, "method": method}
                quick = (size, stream, method) == ("obs40", "grid", "mixture")
                cells.append(Cell(name, "sampling", OURS, params, quick))
                work = f"{title}, {size}, batch {shape['batch']}, {says}"
                rows.append(Row(work, name, target=target, peers=peers))
        for method in ("uniform", "prioritized"):
            for peer in PEERS:
                params = {**base, "stream": "fresh", "method": method}
                quick = (size, method, peer) == ("obs40", "prioritized", "cpprb")
                cells.append(Cell(f"sample/{size}/{method}/{peer}", "sampling", peer, params, quick))
    return cells, rows


def _adding() -> tuple[list[Cell], list[Row]]:
    cells, rows = [], []
    for lanes, title in ((1, "`add`, one at a time"), (16, "`add`, `num_envs=16`, per row")):
        calls = 128 if lanes == 1 else 16
        base = {**OBS40, "rows": 96_000, "states": 10_000, "calls": calls, "seconds": 1.5, "lanes": lanes}
        peers = tuple(f"add/{lanes}/{peer}" for peer in PEERS)
        for method in ("topological", "uniform"):
            for stream, says in STREAMS.items():
                name = f"add/{lanes}/{method}/{stream}"
                params = {**base, "stream": stream, "method": method}
                cells.append(
                    Cell(name, "adding", OURS, params, quick=(lanes, method, stream) == (16, "topological", "grid"))
                )
                for state, prefix in (("ring full", ""), ("ring filling", "filling_")):
                    work = f"{title}, `{method.capitalize()}`, {says}, {state}"
                    at_most = f"add/{lanes}/stable-baselines3"
                    rows.append(Row(work, name, f"{prefix}ratio", peers=peers, at_most=at_most))
        for peer in PEERS:
            params = {**base, "stream": "fresh", "method": "uniform"}
            cells.append(Cell(f"add/{lanes}/{peer}", "adding", peer, params))
    more_cells, more_rows = _adding_vectors()
    return cells + more_cells, rows + more_rows


def _adding_vectors() -> tuple[list[Cell], list[Row]]:
    """Small observations, where the fixed cost of a call dominates."""
    cells, rows = [], []
    vectors = {"shape": (4,), "dtype": "float32", "rows": 96_000, "states": 10_000, "stream": "fresh", "seconds": 1.5}
    libraries = ("cpprb", "stable-baselines3")
    for lanes in (1, 8, 16):
        base = {**vectors, "calls": 128 if lanes == 1 else 32, "lanes": lanes}
        start = f"add/vector/{lanes}"
        cells.append(Cell(f"{start}/mixture", "adding", OURS, {**base, "method": "mixture"}, quick=lanes == 8))
        for peer in libraries:
            cells.append(Cell(f"{start}/{peer}", "adding", peer, {**base, "method": "uniform"}))
        work = f"`add`, float32 (4,), {'one at a time' if lanes == 1 else f'`num_envs={lanes}`, per row'}, `Mixture`"
        peers = tuple(f"{start}/{peer}" for peer in libraries)
        rows.append(Row(work, f"{start}/mixture", peers=peers, at_most=f"{start}/stable-baselines3"))
    return cells, rows


def _scaling() -> tuple[list[Cell], list[Row]]:
    cells, rows = [], []
    for stream, says in (("fresh", "float32 (4,)"), ("numbers", "Discrete(10000)")):
        base = {"shape": (4,), "dtype": "float32", "states": 10_000, "batch": 64, "calls": 40, "seconds": 1.5}
        for method, (title, _) in METHODS.items():
            name = f"rows/{method}/{stream}"
            params = {**base, "stream": stream, "method": method, "rows": 1_000_000, "small_rows": 10_000}
            cells.append(Cell(name, "scaling", OURS, params, quick=(method, stream) == ("mixture", "numbers")))
            rows.append(Row(f"{title}, {says}, 1M rows over 10k rows", name, target=1.5))
    return cells, rows


def _memory() -> tuple[list[Cell], list[Row]]:
    cells, rows = [], []
    base = {"shape": (40, 40, 3), "dtype": "uint8", "states": 10_000, "lanes": 1, "variant": ""}
    peers = tuple(f"memory/{peer}{'/' * bool(variant)}{variant}" for peer, variant in VARIANTS)
    stacked_peers = tuple(f"memory/stacked/{peer}" for peer in PEERS)
    works = (
        ("grid", 1_000_000, 16, "10k states", 0.05),
        ("fresh", 200_000, 16, "no state comes twice", 1.05 + 200 / 4800),
    )
    for stream, count, lanes, says, target in works:
        for method in ("mixture", "topological", "uniform"):
            name = f"memory/{stream}/{method}"
            params = {**base, "stream": stream, "rows": count, "lanes": lanes, "method": method}
            cells.append(Cell(name, "memory", OURS, params, quick=(stream, method) == ("grid", "mixture")))
            work = f"Memory per transition, obs40, {says}, {count // 1000}k rows, `{method.capitalize()}`"
            rows.append(Row(work, name, "frames", target, "frames", peers))
    for peer, variant in VARIANTS:
        name = f"memory/{peer}{'/' * bool(variant)}{variant}"
        params = {**base, "stream": "fresh", "rows": 20_000, "method": "uniform", "variant": variant}
        cells.append(Cell(name, "memory", peer, params, quick=name == "memory/cpprb/next_of"))
    stacked = {**base, "stream": "stacked", "shape": (84, 84)}
    ours = {**stacked, "rows": 50_000, "method": "mixture", "variant": "frame_stack"}
    cells.append(Cell("memory/stacked/mixture", "memory", OURS, ours))
    target = 1.05 + 200 / 7056
    work = "Memory per transition, 4 stacked frames of 84x84, no frame comes twice, 50k rows, `Mixture`"
    rows.append(Row(work, "memory/stacked/mixture", "frames", target, "frames", stacked_peers))
    for peer in PEERS:
        params = {**stacked, "rows": 5_000, "method": "uniform"}
        cells.append(Cell(f"memory/stacked/{peer}", "memory", peer, params))
    return cells, rows


def _startup() -> tuple[list[Cell], list[Row]]:
    cells = [
        Cell("start/warm", "startup", OURS, {"cold": False, "repeats": 5}, quick=True),
        Cell("start/cold", "startup", OURS, {"cold": True}),
        Cell("start/wheel", "startup", OURS, {"cold": True, "wheel": True}),
    ]
    rows = [
        Row("`import backsweep`, kernels on disk", "start/warm", "import_seconds", 1.0, "s"),
        Row("First add, sample and update after that", "start/warm", "first_use_seconds", None, "s"),
        Row("Import and first use, kernels from a wheel", "start/wheel", "first_use_seconds", 5.0, "s"),
        Row("The same, in seconds of the processor", "start/wheel", "cpu_seconds", None, "s"),
        Row("Import and first use, kernels to be compiled", "start/cold", "first_use_seconds", 20.0, "s"),
        Row("The same, in seconds of the processor", "start/cold", "cpu_seconds", None, "s"),
        Row("It says that it is compiling", "start/cold", "says_so", 1.0, "yes"),
    ]
    return cells, rows


def _saving() -> tuple[list[Cell], list[Row]]:
    params = {**OBS40, "rows": 100_000, "states": 10_000, "method": "mixture", "stream": "fresh"}
    rows = [
        Row("`save`, 100k rows of obs40, no state comes twice", "save", "save_mb_per_s", None, "MB/s"),
        Row("`save` again after 1% new rows, share of the first one's time", "save", "second_save_share", None, ""),
        Row("`load`", "save", "load_mb_per_s", None, "MB/s"),
    ]
    return [Cell("save", "saving", OURS, params, quick=True)], rows


def _growth() -> tuple[list[Cell], list[Row]]:
    base = {"dtype": "uint8", "states": 10_000, "stream": "fresh", "calls": 20, "seconds": 0.6, "method": "mixture"}
    sizes = [(8, 8, 3), (40, 40, 3), (84, 84, 3)]
    cells = [
        Cell("growth/rows", "growth", OURS, {**base, "kind": "rows", "values": [10_000, 100_000, 1_000_000]}),
        Cell("growth/batch", "growth", OURS, {**base, "kind": "batch", "values": [16, 64, 256, 1024]}),
        Cell("growth/size", "growth", OURS, {**base, "kind": "size", "values": sizes}),
        Cell("growth/lanes", "growth", OURS, {**base, "kind": "lanes", "values": [1, 4, 16, 64]}),
    ]
    return cells, []


def _inside() -> tuple[list[Cell], list[Row]]:
    cells = []
    for stream in STREAMS:
        for lanes in (1, 16):
            params = {**OBS40, "rows": 32_000, "states": 10_000, "stream": stream, "lanes": lanes, "method": "mixture"}
            quick = (stream, lanes) == ("grid", 1)
            cells.append(Cell(f"inside/{stream}/{lanes}", "inside", OURS, {**params, "calls": 2000}, quick))
    return cells, []


def scaled_down(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a smoke run, whose numbers mean nothing."""
    small = dict(params)
    limits = {"rows": 640, "small_rows": 320, "states": 100, "calls": 4, "seconds": 0.0, "repeats": 1}
    for name, limit in limits.items():
        if name in small:
            small[name] = min(small[name], limit)
    if "values" in small:
        small["values"] = small["values"][:2]
    return small
