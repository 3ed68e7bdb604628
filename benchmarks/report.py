"""Results as markdown tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backsweep.lab.report.marked_text import rewrite_between
from benchmarks.plan import Cell, Row

MISS = "**misses**"
HEADLINES = (
    ("sample/obs40/uniform/fresh", "ratio"),
    ("sample/obs40/prioritized/fresh", "ratio"),
    ("sample/obs40/topological/fresh", "ratio"),
    ("sample/obs40/mixture/fresh", "ratio"),
    ("sample/obs40/topological/grid", "ratio"),
    ("add/1/topological/fresh", "ratio"),
    ("add/16/topological/fresh", "ratio"),
    ("add/vector/1/mixture", "ratio"),
    ("add/vector/8/mixture", "ratio"),
    ("memory/fresh/mixture", "frames"),
    ("memory/grid/mixture", "frames"),
    ("start/wheel", "first_use_seconds"),
)
"""The rows (cell, number) of the page that is meant to be read."""
SHORTEST = HEADLINES[2:4] + HEADLINES[5:6] + HEADLINES[9:11]
"""Those of them that the README shows."""


def details(results: dict[str, Any], cells: list[Cell], rows: list[Row]) -> str:
    """Return every table."""
    found: dict[str, dict[str, Any]] = results["cells"]
    parts = [
        caption(results["machine"], list(found.values())),
        _main_table(found, [row for row in rows if row.cell in found]),
        "### Every library",
        _peer_table(found, cells),
        "### How cost grows",
        _growth_table(found),
        "### Inside a call",
        _inside_table(found),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: dict[str, Any], rows: list[Row], shown: Sequence[tuple[str, str]] = HEADLINES) -> str:
    """Return a short table: some rows, and how many targets are missed."""
    found: dict[str, dict[str, Any]] = results["cells"]
    known = [row for row in rows if row.cell in found]
    judged = [row for row in known if _target(found, row) is not None]
    short = [row for row in judged if misses(found, row)]
    return (
        f"{_main_table(found, [row for row in known if (row.cell, row.number) in shown], short=True)}\n\n"
        f"1 x is a plain `np.take` of the same rows, or a plain row store; obs40 is an image of 40x40x3 bytes. "
        f"{len(short)} of all {len(judged)} targets are missed.\n"
    )


def headlines(results: dict[str, Any], rows: list[Row]) -> str:
    """Return what the README shows."""
    machine = results["machine"]
    latest = max(cell.get("date", machine["date"]) for cell in results["cells"].values())
    return (
        f"{summary(results, rows, SHORTEST)}Measured on {latest}, {machine['cpu']}, {machine['cores']} cores. "
        "More, with a chart: [docs/performance.md](docs/performance.md).\n"
    )


def caption(machine: dict[str, Any], cells: Sequence[dict[str, Any]] = ()) -> str:
    """Return where and when the numbers were measured, and how busy the machine was."""
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in machine["packages"].items())
    kind = " A smoke run: the numbers mean nothing." if machine.get("quick") else ""
    if machine.get("note"):
        kind += f" **{machine['note']}**"
    when, load = machine["date"], f"{machine['load']} at the start"
    if cells:
        dates = Counter(cell.get("date", machine["date"]) for cell in cells)
        when = " and ".join(f"{date} ({count} cells)" for date, count in sorted(dates.items()))
        loads = [cell.get("load", machine["load"]) for cell in cells]
        load = f"{min(loads)} to {max(loads)} meanwhile"
    return (
        f"Measured on {when}: {machine['cpu']}, {machine['cores']} cores, load {load}, {machine['system']}, "
        f"Python {machine['python']}, {versions}.{kind}"
    )


def _main_table(found: dict[str, dict[str, Any]], rows: list[Row], *, short: bool = False) -> str:
    lines = [
        f"| work | target | ours | {'median' if short else 'median, p99'} | best peer |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cell = found[row.cell]
        numbers = cell.get("numbers")
        target = _said_target(found, row)
        if numbers is None:
            lines.append(f"| {row.work} | {target} | {_reason(cell)} | | {_best_peer(found, row)} |")
            continue
        ours = _amount(numbers[row.number], row.unit)
        if misses(found, row):
            ours = f"{ours} {MISS}"
        times = _times(numbers, row.number, short=short)
        lines.append(f"| {row.work} | {target} | {ours} | {times} | {_best_peer(found, row)} |")
    return "\n".join(lines)


def misses(found: dict[str, dict[str, Any]], row: Row) -> bool:
    """Return whether a number misses its target."""
    target, numbers = _target(found, row), found[row.cell].get("numbers")
    if target is None or numbers is None:
        return False
    value: float = numbers[row.number]
    return value < target if row.unit == "yes" else value > target


def _target(found: dict[str, dict[str, Any]], row: Row) -> float | None:
    if not row.at_most:
        return row.target
    target: float | None = found.get(row.at_most, {}).get("numbers", {}).get(row.number)
    return target


def _said_target(found: dict[str, dict[str, Any]], row: Row) -> str:
    target = _target(found, row)
    if target is None:
        return "-"
    if row.unit == "yes":
        return "yes"
    whose = f" ({found[row.at_most]['library']})" if row.at_most else ""
    return f"<= {_amount(target, row.unit)}{whose}"


def _amount(value: float, unit: str) -> str:
    if unit == "yes":
        return "yes" if value else "no"
    if unit == "x":
        return f"{value:.2f} x"
    if unit == "frames":
        return f"{value:.3f} frames"
    return f"{value:.3g} {unit}".strip()


def _times(numbers: dict[str, float], number: str, *, short: bool = False) -> str:
    prefix = number.removesuffix("ratio")
    if f"{prefix}median_us" in numbers and short:
        return f"{numbers[f'{prefix}median_us']:.1f} us"
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
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Performance\n\n{BEGIN}\n{END}\n")
    rewrite_between(path, BEGIN, END, text)
