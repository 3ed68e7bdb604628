"""Results as markdown tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.plan import Cell, Row

MISS = "**misses**"
HEADLINES = (
    ("sample/obs40/uniform/grid", "ratio"),
    ("sample/obs40/mixture/grid", "ratio"),
    ("add/1/topological/grid", "ratio"),
    ("memory/grid/mixture", "frames"),
)
"""The rows (cell, number) that the README shows, apart from those that miss their target."""


def tables(results: dict[str, Any], cells: list[Cell], rows: list[Row]) -> str:
    """Return everything that goes between the marks in the docs."""
    found: dict[str, dict[str, Any]] = results["cells"]
    parts = [
        caption(results["machine"]),
        _main_table(found, [row for row in rows if row.cell in found]),
        "### Every library",
        _peer_table(found, cells),
        "### How cost grows",
        _growth_table(found),
        "### Inside a call",
        _inside_table(found),
    ]
    return "\n\n".join(parts) + "\n"


def headlines(results: dict[str, Any], rows: list[Row]) -> str:
    """Return what the README shows: a few rows, and every row that misses its target."""
    found: dict[str, dict[str, Any]] = results["cells"]
    known = [row for row in rows if row.cell in found]
    short = [row for row in known if misses(found[row.cell].get("numbers", {}).get(row.number, math.nan), row)]
    shown = [row for row in known if (row.cell, row.number) in HEADLINES and row not in short]
    judged = sum(row.target is not None for row in known)
    machine = results["machine"]
    return (
        f"{_main_table(found, shown + short)}\n\n"
        f"{len(short)} of {judged} targets are missed; the table has all of these and {len(shown)} others. obs40 is an "
        "image of 40x40x3 bytes; 1 x is a plain `np.take` of the same rows, or a plain row store.\n"
        f"Measured on {machine['date']}, {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}. "
        "Every row and every library: [docs/performance.md](docs/performance.md).\n"
    )


def caption(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in machine["packages"].items())
    kind = " A smoke run: the numbers mean nothing." if machine.get("quick") else ""
    if machine.get("note"):
        kind += f" **{machine['note']}**"
    return (
        f"Measured on {machine['date']}: {machine['cpu']}, {machine['cores']} cores, load {machine['load']} at the "
        f"start, {machine['system']}, Python {machine['python']}, {versions}.{kind}"
    )


def _main_table(found: dict[str, dict[str, Any]], rows: list[Row]) -> str:
    lines = ["| work | target | ours | median, p99 | best peer |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        cell = found[row.cell]
        numbers = cell.get("numbers")
        target = "-" if row.target is None else _target(row)
        if numbers is None:
            lines.append(f"| {row.work} | {target} | {_reason(cell)} | | {_best_peer(found, row)} |")
            continue
        ours = _amount(numbers[row.number], row.unit)
        if misses(numbers[row.number], row):
            ours = f"{ours} {MISS}"
        lines.append(f"| {row.work} | {target} | {ours} | {_times(numbers, row.number)} | {_best_peer(found, row)} |")
    return "\n".join(lines)


def misses(value: float, row: Row) -> bool:
    """Say whether a number is beyond its target."""
    if row.target is None:
        return False
    return value < row.target if row.unit == "yes" else value > row.target


def _target(row: Row) -> str:
    assert row.target is not None
    if row.unit == "yes":
        return "yes"
    return f"<= {_amount(row.target, row.unit)}"


def _amount(value: float, unit: str) -> str:
    if unit == "yes":
        return "yes" if value else "no"
    if unit == "x":
        return f"{value:.2f} x"
    if unit == "frames":
        return f"{value:.3f} frames"
    return f"{value:.3g} {unit}".strip()


def _times(numbers: dict[str, float], number: str) -> str:
    prefix = number.removesuffix("ratio")
    if f"{prefix}median_us" in numbers:
        return f"{numbers[f'{prefix}median_us']:.1f}, {numbers[f'{prefix}p99_us']:.1f} us"
    if "frames" in numbers:
        return f"{numbers['bytes']:.0f} bytes"
    return ""


def _best_peer(found: dict[str, dict[str, Any]], row: Row) -> str:
    known = [(found[name]["numbers"], name) for name in row.peers if "numbers" in found.get(name, {})]
    measured = [(numbers[row.number], name) for numbers, name in known if row.number in numbers]
    if not measured:
        return "-"
    value, name = min(measured)
    label = found[name]["library"]
    variant = found[name]["params"].get("variant")
    return f"{label}{f' ({variant})' if variant else ''} {_amount(value, row.unit)}"


def _reason(cell: dict[str, Any]) -> str:
    return cell["missing"] if "missing" in cell else f"**failed**: {cell['failed']}"


def _peer_table(found: dict[str, dict[str, Any]], cells: list[Cell]) -> str:
    lines = ["| cell | library | ratio or amount | median, p99 | floor |", "| --- | --- | --- | --- | --- |"]
    for cell in cells:
        result = found.get(cell.name)
        if result is None or cell.family not in ("sampling", "adding", "memory"):
            continue
        variant = cell.params.get("variant")
        start = f"| {cell.name} | {cell.library}{f' ({variant})' if variant else ''}"
        if "numbers" not in result:
            lines.append(f"{start} | {_reason(result)} | | |")
            continue
        numbers = result["numbers"]
        number, unit = ("frames", "frames") if cell.family == "memory" else ("ratio", "x")
        floor = f"{numbers['floor_median_us']:.2f} us" if "floor_median_us" in numbers else ""
        if "large_ring_ratio" in numbers:
            large = numbers["large_ring_floor_median_us"]
            floor += f"; large ring {large:.2f} us, {numbers['large_ring_ratio']:.2f} x"
        lines.append(f"{start} | {_amount(numbers[number], unit)} | {_times(numbers, number)} | {floor} |")
    return "\n".join(lines)


def _growth_table(found: dict[str, dict[str, Any]]) -> str:
    lines = ["| work | value | median, p99 | over the floor |", "| --- | --- | --- | --- |"]
    titles = {
        "rows": "`Mixture` sample + update, float32 (4,), batch 64: rows",
        "batch": "`Mixture` sample + update, obs40, 20k rows: batch",
        "size": "`Mixture` sample + update, batch 64, 20k rows: observation",
        "lanes": "`add` with `Mixture`, obs40, no state comes twice, per row: lanes",
    }
    for kind, title in titles.items():
        cell = found.get(f"growth/{kind}")
        if cell is None:
            continue
        if "numbers" not in cell:
            lines.append(f"| {title} | | {_reason(cell)} | |")
            continue
        numbers = cell["numbers"]
        for value in dict.fromkeys(name.split()[0] for name in numbers):
            times = f"{numbers[f'{value} median_us']:.1f}, {numbers[f'{value} p99_us']:.1f} us"
            lines.append(f"| {title} | {value} | {times} | {numbers[f'{value} ratio']:.2f} x |")
    return "\n".join(lines)


def _inside_table(found: dict[str, dict[str, Any]]) -> str:
    inside = {name: cell for name, cell in found.items() if name.startswith("inside/")}
    columns = {name: cell for name, cell in inside.items() if "numbers" in cell}
    if not columns:
        return "\n".join(f"{name}: {_reason(cell)}" for name, cell in inside.items()) or "Not measured."
    heads = [
        f"{'no state comes twice' if '/fresh/' in name else '10k states'}, {cell['params']['lanes']} lane(s)"
        for name, cell in columns.items()
    ]
    lines = [f"| microseconds per call | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    parts = list(dict.fromkeys(part for cell in columns.values() for part in cell["numbers"]))
    for part in sorted(parts):
        values = [cell["numbers"].get(part) for cell in columns.values()]
        lines.append(f"| {part} | {' | '.join('-' if value is None else f'{value:.2f}' for value in values)} |")
    return "\n".join(lines)


BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def write_between_marks(path: Path, text: str) -> None:
    """Put the tables into a document, in place of those of the last run."""
    document = path.read_text() if path.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{path} must hold the lines {BEGIN} and {END}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
