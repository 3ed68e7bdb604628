"""What graph values cost: renewals as a graph grows, the solver's order, and targets in batches.

    python -m benchmarks.planning              measure, print, rewrite the tables of docs/performance-planning.md
    python -m benchmarks.planning --batches    measure only batches again; the record keeps its renewals
    python -m benchmarks.planning --quick      small graphs and short measurements, and nothing is rewritten

The world is a grid of cells with four moves. A move costs 0.001; one cell in 500 is a goal, which pays 1 and ends the
episode. Walkers fill the replay with random moves until the ring is full; between two renewals ten of them make 100
moves each. Where an action was never tried, made-up network values count: random numbers around 0. Making them is not
timed, as the network's own time is not.

Renewals are timed by the processor time of their one thread, so other processes do not count; batches by the clock, in
turns.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep import GraphValues, Replay, Topological, Uniform
from backsweep.lab.report.marked_text import rewrite_between
from backsweep.planning import follow_kernels, solve_kernels, target_kernels
from backsweep.planning.model_kernels import CHANGED_COUNT, VALUE, Model
from backsweep.planning.planner import Planner
from benchmarks.machine import facts, idlest_core
from benchmarks.planning_kernels import solve_first_in_first_out
from benchmarks.records import TITLES, Block, Records, keep, kind_here, read
from benchmarks.report import caption
from benchmarks.timing import Effort, compare, timed_calls

ROOT = Path(__file__).resolve().parent.parent
NAME, BEGIN, END = "planning", "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
MOVES = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
WALKERS, NEW_ROWS, NEW_WALKERS, CELLS_PER_GOAL = 1_000, 1_000, 10, 500
DISCOUNT, BOUNDS, NOISE = 0.99, (-1.0, 1.0), 0.1
MILLISECONDS = 1e3


@dataclass(frozen=True)
class Case:
    """A graph to renew values on."""

    cells: int
    chance: float
    """How often a move goes another way."""
    rows_per_cell: int = 4


CASES = (Case(10_000, 0.0), Case(100_000, 0.0), Case(1_000_000, 0.0), Case(100_000, 0.1))
QUICK_CASES = (Case(1_000, 0.0), Case(1_000, 0.1))


class GridWorld:
    """Cells in a square, walkers on it, and the replay they fill."""

    def __init__(self, case: Case) -> None:
        self.case, self.random = case, np.random.default_rng(0)
        self.side = int(np.sqrt(case.cells))
        self.goals = self.random.random((self.side, self.side)) < 1 / CELLS_PER_GOAL
        self.replay = Replay(
            gym.spaces.Discrete(self.side**2),
            gym.spaces.Discrete(len(MOVES)),
            case.rows_per_cell * self.side**2,
            num_envs=WALKERS,
            gamma=DISCOUNT,
            values=GraphValues(),
        )
        self.places = self.random.integers(self.side, size=(WALKERS, 2))
        self.network = self.random.normal(size=(self.side**2, len(MOVES))) * NOISE

    @property
    def planner(self) -> Planner:
        """The replay's planner."""
        planner = self.replay.machinery.planner
        assert planner is not None
        return planner

    def walk(self, rows: int, walkers: int = WALKERS) -> None:
        """Add rows of random moves by some of the walkers; every 50 moves they restart somewhere else."""
        mask = np.arange(WALKERS) < walkers
        for call in range(rows // walkers):
            action = self.random.integers(len(MOVES), size=WALKERS)
            slips = self.random.random(WALKERS) < self.case.chance
            taken = np.where(slips, self.random.integers(len(MOVES), size=WALKERS), action)
            after = np.clip(self.places + MOVES[taken], 0, self.side - 1)
            ends = self.goals[after[:, 0], after[:, 1]]
            cut = np.full(WALKERS, call % 50 == 49) & ~ends
            before, next_cells = self.places @ [self.side, 1], after @ [self.side, 1]
            self.replay.add(before, action, np.where(ends, 1.0, -0.001), next_cells, ends, cut, mask=mask)
            elsewhere = self.random.integers(self.side, size=(WALKERS, 2))
            self.places = np.where((ends | cut)[:, None], elsewhere, np.where(mask[:, None], after, self.places))

    def answers(self, observations: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the network's values of stored observations."""
        store = self.replay.machinery.store
        cells = store.layout.views(store.observation_words(observations.astype(np.int64)))
        found: NDArray[np.float64] = self.network[cells]
        return found

    def another_network(self) -> None:
        """Change all of the network's values a little."""
        self.network = self.network + self.random.normal(size=self.network.shape) * NOISE / 5


def renew(world: GridWorld, planner: Planner) -> dict[str, float]:
    """Renew values; return the milliseconds of its parts and how many states were updated."""
    store, clock = world.replay.machinery.store, time.thread_time
    times = [clock()]
    follow_kernels.follow(store.oldest, store.total, planner.experience, planner.model)
    times.append(clock())
    vertices, observations = planner.begin_renewal()
    times.append(clock())
    answers = world.answers(observations)
    begin = clock()
    renewal = planner.finish_renewal(vertices, answers, BOUNDS)
    parts = {"rows": times[1] - times[0], "asking": times[2] - times[1], "solving": clock() - begin}
    parts = {name: MILLISECONDS * seconds for name, seconds in parts.items()}
    return {**parts, "all": sum(parts.values()), "updates": renewal.updates, "asked": renewal.asked}


def median_renewal(world: GridWorld, rounds: int, *, network_changes: bool) -> dict[str, float]:
    """Return the medians over renewals with 1,000 new rows each."""
    found = []
    for _ in range(rounds):
        world.walk(NEW_ROWS, NEW_WALKERS)
        if network_changes:
            world.another_network()
        found.append(renew(world, world.planner))
    medians = {name: float(np.median([one[name] for one in found])) for name in found[0]}
    return {**medians, "most": max(one["all"] for one in found)}


def new_planner(world: GridWorld) -> Planner:
    """Return a planner without any rows yet."""
    parts = world.replay.machinery
    assert parts.graph is not None
    return Planner(world.planner.config, parts.store, parts.graph, world.replay.action_space, DISCOUNT)


def copied(model: Model, high: int) -> Model:
    """Return a copy of the parts of a model that solving changes, down to the vertices in use."""
    return model._replace(
        vertices=model.vertices[:high].copy(),
        numbers=model.numbers[:high].copy(),
        pair_numbers=model.pair_numbers.copy(),
        changed=model.changed[:high].copy(),
        counters=model.counters.copy(),
    )


def orders(world: GridWorld, planner: Planner, plain_first: bool = False) -> dict[str, float]:
    """Solve the pending changes in the solver's order and first in first out; the model is not changed."""
    vertices, observations = planner.begin_renewal()
    tolerance = planner.config.tolerance * (BOUNDS[1] - BOUNDS[0])
    bounds = np.array(BOUNDS)
    answers, cautious = world.answers(observations), planner.config.cautious
    target_kernels.take_network_values(vertices, answers, bounds, tolerance, cautious, planner.model)
    graph = world.replay.machinery.graph
    assert graph is not None
    high, most = graph.vertices_high, 10**12
    assert planner.model.counters[CHANGED_COUNT] > 0
    own, plain = copied(planner.model, high), copied(planner.model, high)
    ring, waits = np.empty(high, np.int32), np.zeros(high, np.bool_)
    span = solve_kernels.Span(bounds, np.array([-np.inf, np.inf]))
    solvers: dict[str, Callable[[], int]] = {
        "own": lambda: solve_kernels.solve(DISCOUNT, tolerance, most, span, own, planner.queue),
        "plain": lambda: solve_first_in_first_out(DISCOUNT, tolerance, span, plain, ring, waits),
    }
    found = {}
    for name in sorted(solvers, reverse=plain_first):  # whoever comes second finds shared arrays in the cache
        begin = time.thread_time()
        found[f"{name}_updates"] = float(solvers[name]())
        found[name] = MILLISECONDS * (time.thread_time() - begin)
    difference = np.nanmax(np.abs(own.numbers[:, VALUE] - plain.numbers[:, VALUE]))
    if difference > 10 * tolerance / (1 - DISCOUNT):
        raise RuntimeError(f"the two orders differ by {difference}")
    return found


def compared_orders(world: GridWorld, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians of both orders in four named cases."""
    found = {"all new": [orders(world, new_planner(world), turn % 2 == 1) for turn in range(max(rounds // 4, 1))]}
    world.network -= 2 * NOISE
    found["the network says less"] = [orders(world, world.planner)]
    world.network += 2 * NOISE
    renew(world, world.planner)
    for name, network_changes in (("1,000 rows", False), ("1,000 rows and the network", True)):
        found[name] = []
        for turn in range(rounds):
            world.walk(NEW_ROWS, NEW_WALKERS)
            if network_changes:
                world.another_network()
            found[name].append(orders(world, world.planner, turn % 2 == 1))
            renew(world, world.planner)
    return {
        name: {number: float(np.median([one[number] for one in some])) for number in some[0]}
        for name, some in found.items()
    }


def measure_case(case: Case, rounds: int) -> dict[str, Any]:
    """Measure renewals on one graph."""
    world = GridWorld(case)
    # The ring is full: every new row overwrites one.
    world.walk(case.rows_per_cell * world.side**2)
    renew(world, world.planner)
    full = [renew(world, new_planner(world)) for _ in range(3)]
    return {
        **asdict(case),
        "vertices": world.replay.graph.num_vertices,
        "rows": len(world.replay),
        "full": {name: float(np.median([one[name] for one in full])) for name in full[0]},
        "unchanged": median_renewal(world, rounds, network_changes=False),
        "changed": median_renewal(world, rounds, network_changes=True),
        "orders": compared_orders(world, rounds),
    }


def measure_sample(kind: str, sampler: Any, effort: Effort) -> dict[str, Any]:
    """Compare `sample` with and without targets."""
    random, states, lanes = np.random.default_rng(0), 10_000, 100
    images = random.integers(0, 256, (states, 40, 40, 3), np.uint8) if kind == "obs40" else np.arange(states)
    space = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8) if kind == "obs40" else gym.spaces.Discrete(states)
    replays = []
    for values in (GraphValues(), None):
        replay = Replay(space, gym.spaces.Discrete(4), 100_000, sampler, num_envs=lanes, values=values)
        place = random.integers(states, size=lanes)
        for _ in range(1_000):
            after = (place + random.integers(1, 5, size=lanes)) % states
            ends = after % 100 == 0
            replay.add(images[place], after % 4, np.zeros(lanes), images[after], ends, np.zeros(lanes, bool))
            place = np.where(ends, random.integers(states, size=lanes), after)
        replays.append(replay)
    replays[0].renew_values(lambda seen: np.zeros((len(seen), 4)), bounds=BOUNDS)
    blocks = [lambda count, replay=replay: timed_calls(lambda: replay.sample(64), count) for replay in replays]
    found = compare(blocks[0], blocks[1], effort)
    return {"observation": kind, "sampler": type(sampler).__name__, **found}


def tables(records: Records) -> str:
    """Return the results as markdown, with a row for each kind of processor."""
    heads = [_head(record) for record in records.values()]
    return "\n\n".join([*heads, _renewals(records), _orders(records), _samples(records)]) + "\n"


def _head(record: dict[str, Any]) -> str:
    """Return when and where a record was measured; its batches may be newer than the rest."""
    head = f"{caption(record['machine'])} Load {record['load_after']} at the end."
    newer = record.get("batches_machine")
    return head if newer is None else f"{head} Batches: measured on {newer['date']}, load {newer['load']} at the start."


def _renewals(records: Records) -> str:
    lines = [
        "| vertices | rows | moves | processor | all new: taking rows in | solving | 1,000 rows "
        "| 1,000 rows, network changed |",
        "| ---: | ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for processor, case in _by_case(records, "renewals"):
        full = case["full"]
        lines.append(
            f"| {case['vertices']:,} | {case['rows']:,} | {_moves(case)} | {processor} | {full['rows']:,.0f} ms | "
            f"{full['solving']:,.0f} ms | {_milliseconds(case['unchanged'])} | {_milliseconds(case['changed'])} |"
        )
    return "\n".join(lines)


def _orders(records: Records) -> str:
    lines = [
        "| vertices | moves | what changed | processor | own order: updates | time | first in first out: updates "
        "| time |",
        "| ---: | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for cases in zip(*(record["renewals"] for record in records.values()), strict=True):
        for name in cases[0]["orders"]:
            for processor, case in zip(records, cases, strict=True):
                one = case["orders"][name]
                own = f"{one['own_updates']:,.0f} | {one['own']:,.1f} ms"
                plain = f"{one['plain_updates']:,.0f} | {one['plain']:,.1f} ms"
                lines.append(f"| {case['vertices']:,} | {_moves(case)} | {name} | {processor} | {own} | {plain} |")
    return "\n".join(lines)


def _samples(records: Records) -> str:
    lines = ["| `sample(64)` | processor | with targets | without | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    for processor, one in _by_case(records, "samples"):
        what = "40x40x3 images" if one["observation"] == "obs40" else "states as numbers"
        lines.append(
            f"| `{one['sampler']}`, {what} | {processor} | {one['median_us']:.1f} us | "
            f"{one['floor_median_us']:.1f} us | "
            f"{one['ratio']:.2f} ({one['ratio_low']:.2f} to {one['ratio_high']:.2f}) |"
        )
    return "\n".join(lines)


def _by_case(records: Records, part: str) -> list[tuple[str, dict[str, Any]]]:
    """Return each case of a part with the processor, those of one case next to each other."""
    cases = zip(*(record[part] for record in records.values()), strict=True)
    return [pair for of_one in cases for pair in zip(records, of_one, strict=True)]


def _moves(case: dict[str, Any]) -> str:
    return f"{case['chance']:.0%} by chance" if case["chance"] else "sure"


def _milliseconds(renewal: dict[str, float]) -> str:
    return f"{renewal['all']:.1f} ms (rows {renewal['rows']:.1f}, solving {renewal['solving']:.1f})"


BLOCKS = (Block(NAME, ROOT / "docs" / "performance-planning.md", BEGIN, END, tables),)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description="What graph values cost.")
    parser.add_argument("--quick", action="store_true", help="small and short; nothing is rewritten unless asked for")
    parser.add_argument("--batches", action="store_true", help="only batches; the record keeps its renewals")
    parser.add_argument("--docs", type=Path, help="a page to write the tables of this run into")
    parser.add_argument("--json", type=Path, help="where to write the numbers too")
    arguments = parser.parse_args()
    quick = arguments.quick
    machine = {**facts(), "quick": quick}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {idlest_core()})
    measure_case(QUICK_CASES[0], 1)  # compiles
    if arguments.batches:
        results: dict[str, Any] = {**read(NAME)[TITLES[kind_here()]], "batches_machine": machine}
    else:
        cases, rounds = (QUICK_CASES, 2) if quick else (CASES, 16)
        results = {"machine": machine, "renewals": [measure_case(case, rounds) for case in cases]}
        results["load_after"] = round(os.getloadavg()[0], 2)
    effort = Effort(20, 0.1, 3) if quick else Effort(50, 5.0)
    results["samples"] = [
        measure_sample(kind, sampler, effort)
        for kind in (("number",) if quick else ("obs40", "number"))
        for sampler in (Uniform(), Topological())
    ]
    text = tables({TITLES[kind_here()]: results})
    print(text)
    if arguments.docs is not None:
        rewrite_between(arguments.docs, BEGIN, END, text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if not quick:
        keep(NAME, results)
        BLOCKS[0].write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
