"""Tables as HTML, with numbers aligned right."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from backsweep.agent.palette import title_of
from backsweep.lab.claims.verdict import Table
from backsweep.lab.report.chart import task_title
from backsweep.lab.report.tables import shown
from backsweep.tasks import TASKS

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
    """Return the title of a method or a task; other text unchanged."""
    return task_title(text) if text in TASKS else title_of(text)


def _is_number(values: list[Any]) -> bool:
    """Return whether all entries of a column are numbers or begin with one."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return all(NUMBERS.match(text) for text in texts) and any(text[:1].isdigit() for text in texts)
    return all(NUMBERS.match(text) for text in texts) and not any(isinstance(value, bool) for value in values)
