"""The README's table: this library and its peers, side by side, as multiples of the floor."""

from __future__ import annotations

from typing import Any

from benchmarks.libraries import OURS, PEERS
from benchmarks.machine import processor
from benchmarks.plan import VARIANTS
from benchmarks.records import Records

WORKS = (
    ("draw 64 images", "sample/obs40/uniform/fresh", "ratio", "sample/obs40/uniform/"),
    ("draw 64 images by a reverse sweep", "sample/obs40/topological/fresh", "ratio", ""),
    ("draw 64 images by priority, then update", "sample/obs40/prioritized/fresh", "ratio", "sample/obs40/prioritized/"),
    ("add an image, graph included", "add/1/topological/fresh", "ratio", "add/1/"),
    ("add 16 images, one for each environment", "add/16/topological/fresh", "ratio", "add/16/"),
    ("add a vector of 4 numbers", "add/vector/1/mixture", "ratio", "add/vector/1/"),
    ("memory of a row, in images", "memory/fresh/mixture", "frames", "memory/"),
    ("the same with 10,000 different images", "memory/grid/mixture", "frames", "memory/"),
)
"""What is done, our cell, its number, and how the peers' cells begin; nothing if they have no such thing."""
MEANING = (
    "No image comes twice but in the last line. Peers are at their best: three of them have an option to store each "
    "image once, with which Stable-Baselines3 and Tianshou lose the last state of an episode. More, with a chart: "
    "[docs/performance.md](docs/performance.md)."
)
TITLES = {"cpprb": "cpprb", "stable-baselines3": "Stable-Baselines3", "tianshou": "Tianshou", "torchrl": "TorchRL"}


def comparison(records: Records) -> str:
    """Return what its numbers mean, the table, and where they were measured."""
    unit = (
        "Multiples of what plain numpy needs for the same rows (`np.take`, or a row store), "
        f"on {' and '.join(records)}; smaller is better. Images have 40x40x3 bytes:"
    )
    lines = [f"| | {OURS} | {' | '.join(TITLES[peer] for peer in PEERS)} |", "| --- |" + " ---: |" * (1 + len(PEERS))]
    for work, ours, number, prefix in WORKS:
        numbers = [f"**{_numbers(records, (ours,), number)}**"]
        for peer in PEERS:
            variants = [f"/{variant}" if variant else "" for name, variant in VARIANTS if name == peer]
            cells = [f"{prefix}{peer}{variant}" for variant in variants] if prefix else []
            numbers.append(_numbers(records, cells, number))
        lines.append(f"| {work} | {' | '.join(numbers)} |")
    places = []
    for kind, record in records.items():
        machine = record["machine"]
        latest = max(cell.get("date", machine["date"]) for cell in record["cells"].values())
        places.append(f"{kind} ({processor(machine)}, {latest})")
    return "\n".join([unit, "", *lines, "", f"Measured on {' and '.join(places)}. {MEANING}"])


def _numbers(records: Records, cells: Any, number: str) -> str:
    """Return the best of some cells on each kind of processor."""
    found = []
    for record in records.values():
        known = [record["cells"].get(cell, {}).get("numbers", {}).get(number) for cell in cells]
        measured = [value for value in known if value is not None]
        found.append(f"{min(measured):.2f}" if measured else "-")
    return "-" if set(found) == {"-"} else ", ".join(found)
