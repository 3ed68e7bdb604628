"""Numbers as text and as CSV."""

from __future__ import annotations

import csv
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from backsweep.agent.palette import METHODS, in_order, title_of
from backsweep.lab.claims.question import Table
from backsweep.lab.report.chart import task_title
from backsweep.lab.stats import Interval, plain
from backsweep.tasks import TASKS

SUCCESS = "episodes that reach the goal"
DIVERGED = "runs whose values diverged"
OVER = "over "
"""In front of a method, in the title of the column with the leads over it."""
NEGLIGIBLE = 5e-4
"""Share of an interval's largest number below which another one is shown as 0."""


def shown(value: Any) -> str:
    """Return a value as text for the reader."""
    if isinstance(value, Interval):
        return _interval(value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return plain(value)
    return str(value)


def _interval(value: Interval) -> str:
    """Return an interval as text; what is nothing next to its largest number is 0, not 4.31e-09."""
    ends = (value.estimate, value.low, value.high)
    largest = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    return str(Interval(*(0.0 if abs(end) < NEGLIGIBLE * largest else end for end in ends)))


def side_by_side(entries: Table) -> Table:
    """Return a long table with a column for each opponent or method; other tables unchanged."""
    if not entries:
        return entries
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    if all({"task", "against", "difference"} <= entry.keys() for entry in entries):
        for entry in entries:
            leader = {"of": entry["method"]} if "method" in entry else {}  # if there are several
            start = {"lead in": entry["measure"], **leader, "on": entry["task"]}
            line = lines.setdefault(tuple(start.values()), start)
            text = f"{entry['difference']}, p {entry['p (Holm)']:.2g}, {entry['seeds ahead']} seeds"
            line[OVER + entry["against"]] = text
    elif all({"task", "method", "median steps"} <= entry.keys() for entry in entries):
        for entry in entries:
            start = {"median steps on": entry["task"]}
            (reached,) = (text for name, text in entry.items() if name.startswith("runs that reach"))
            median = entry["median steps"]
            text = "never" if math.isinf(median.low) else str(median)  # rather than three times
            lines.setdefault((entry["task"],), start)[entry["method"]] = f"{text}, {reached} runs"
    elif all({"task", "method", SUCCESS} <= entry.keys() for entry in entries):
        for entry in entries:
            shares = " ".join(f"{100 * share:.0f}" for share in entry[SUCCESS])
            lines.setdefault((entry["task"],), {"percent on": entry["task"]})[entry["method"]] = shares
    elif all({"task", "method", DIVERGED} <= entry.keys() for entry in entries):
        for entry in entries:
            count = f"{entry[DIVERGED]} of {entry['runs']}"
            lines.setdefault((entry["task"],), {"runs on": entry["task"]})[entry["method"]] = count
    return [_ordered(line) for line in lines.values()] or entries


def _ordered(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with its methods in the legend's order; the other columns come first, as they are."""
    names = {column: column.removeprefix(OVER) for column in line}
    known = in_order(name for name in names.values() if name in METHODS)
    columns = sorted(line, key=lambda column: known.index(names[column]) if names[column] in METHODS else -1)
    return {column: line[column] for column in columns}


def table_name(slug: str, title: str) -> str:
    """Return the file name of an answer's additional table."""
    return f"{slug}-{re.sub(r'[^a-z0-9]+', '-', title.lower())}.csv"


def write_table(path: Path, entries: Table) -> None:
    """Write entries as CSV; an interval takes three columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = [_flat(entry) for entry in entries]
    columns = list(dict.fromkeys(name for entry in flat for name in entry))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in entry.items():
        if isinstance(value, Interval):
            result.update({name: value.estimate, f"{name} low": value.low, f"{name} high": value.high})
        else:
            result[name] = value
    return result


MOST_ENTRIES = 400
NUMBERS = re.compile(r"(?:-?[\d.,]+|never|-|no)(?:$|[\s%,\[(])")


def table_html(entries: Table, name: str) -> str:
    """Return entries as an HTML table; `name` is its label for screen readers."""
    columns = list(dict.fromkeys(column for entry in entries for column in entry))
    right = {column: _is_number([entry.get(column) for entry in entries]) for column in columns}

    def cell(tag: str, column: str, text: str) -> str:
        kind = " class=number" if right[column] else ""
        scope = " scope=col" if tag == "th" else ""
        return f"<{tag}{scope}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", column, _title(column)) for column in columns)
    body = "".join(
        "<tr>" + "".join(cell("td", column, _title(shown(entry.get(column)))) for column in columns) + "</tr>"
        for entry in entries[:MOST_ENTRIES]
    )
    more = (
        f"<p class=soft>{len(entries) - MOST_ENTRIES} more entries are in the CSV.</p>"
        if len(entries) > MOST_ENTRIES
        else ""
    )
    return (
        f'<div class=wide role=region aria-label="{escape(name)}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{more}"
    )


def _title(text: str) -> str:
    """Return the title of a method or a task, also after "over"; other text unchanged."""
    if text.startswith(OVER):
        return OVER + title_of(text.removeprefix(OVER))
    return task_title(text) if text in TASKS else title_of(text)


def _is_number(values: list[Any]) -> bool:
    """Return whether all entries of a column are numbers or begin with one."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return all(NUMBERS.match(text) for text in texts) and any(text[:1].isdigit() for text in texts)
    return all(NUMBERS.match(text) for text in texts) and not any(isinstance(value, bool) for value in values)


_TASK = re.compile(r"\b[a-z]+/[a-z0-9-]*[a-z0-9]")
# Some names of methods are English words: one counts only in front of a number with its interval.
_METHOD = re.compile(rf"\b({'|'.join(sorted(METHODS, key=len, reverse=True))})(?= [\d.,]+ \[)")


def readable(text: str) -> str:
    """Return text with the titles of tasks, and of methods that stand in front of an interval."""
    text = _TASK.sub(lambda found: task_title(found[0]) if found[0] in TASKS else found[0], text)
    return _METHOD.sub(lambda found: title_of(found[0]), text)
