"""Results as markdown tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.machine import processor
from benchmarks.plan import Cell, Row
from benchmarks.records import Records

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


def details(records: Records, cells: list[Cell], rows: list[Row]) -> str:
    """Return every table: the targets of all processors together, then the rest for each."""
    parts = [*captions(records), _main_table(records, [row for row in rows if _known(records, row)])]
    for kind, record in records.items():
        found = record["cells"]
        parts += [
            f"### Every library, {kind}",
            _peer_table(found, cells),
            f"### How cost grows, {kind}",
            _growth_table(found),
            f"### Inside a call, {kind}",
            _inside_table(found),
        ]
    return "\n\n".join(parts) + "\n"


def summary(records: Records, rows: list[Row]) -> str:
    """Return a short table: some rows, and how many targets are missed."""
    chosen = [row for row in rows if (row.cell, row.number) in HEADLINES and _known(records, row)]
    missed = []
    for kind, record in records.items():
        judged = [row for row in rows if row.cell in record["cells"] and _target(record["cells"], row) is not None]
        short = sum(misses(record["cells"], row) for row in judged)
        missed.append(f"{short} of {len(judged)} on {kind}")
    return (
        f"{_main_table(records, chosen, short=True)}\n\n"
        f"1 x is a plain `np.take` of the same rows, or a plain row store; obs40 is an image of 40x40x3 bytes. "
        f"Missed targets: {', '.join(missed)}.\n"
    )


def captions(records: Records) -> list[str]:
    """Return for each processor when and where its numbers were measured."""
    return [caption(record["machine"], list(record["cells"].values())) for record in records.values()]


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
        f"Measured on {when}: {processor(machine)}, load {load}, {machine['system']}, "
        f"Python {machine['python']}, {versions}.{kind}"
    )


def _known(records: Records, row: Row) -> bool:
    return any(row.cell in record["cells"] for record in records.values())


def _main_table(records: Records, rows: list[Row], *, short: bool = False) -> str:
    titles = ["work", "target", *(f"ours, {kind}" for kind in records), *(f"best peer, {kind}" for kind in records)]
    lines = [f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles)]
    for row in rows:
        every = [record["cells"] for record in records.values()]
        ours = [_ours(found, row, short=short) for found in every]
        peers = [_best_peer(found, row) for found in every]
        lines.append(f"| {' | '.join([row.work, _said_target(records, row), *ours, *peers])} |")
    return "\n".join(lines)


def _ours(found: dict[str, dict[str, Any]], row: Row, *, short: bool) -> str:
    cell = found.get(row.cell)
    if cell is None:
        return "-"
    numbers = cell.get("numbers")
    if numbers is None:
        return _reason(cell)
    times = _times(numbers, row.number, short=short)
    return _amount(numbers[row.number], row.unit) + f" ({times})" * bool(times) + f" {MISS}" * misses(found, row)


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


def _said_target(records: Records, row: Row) -> str:
    targets = {kind: _target(record["cells"], row) for kind, record in records.items()}
    known = {kind: target for kind, target in targets.items() if target is not None}
    if not known:
        return "-"
    if row.unit == "yes":
        return "yes"
    if not row.at_most:
        return f"<= {_amount(next(iter(known.values())), row.unit)}"
    library = next(record["cells"][row.at_most]["library"] for kind, record in records.items() if kind in known)
    said = ", ".join(f"{_amount(target, row.unit)} on {kind}" for kind, target in known.items())
    return f"<= {library}: {said}"


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
    return "\n".join(lines) if len(lines) > 2 else "Not measured."


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
