"""Text of verdicts for readers: tasks and methods by their titles."""

from __future__ import annotations

import re

from backsweep.agent.palette import METHODS, title_of
from backsweep.lab.report.chart import task_title
from backsweep.tasks import TASKS

_TASK = re.compile(r"\b[a-z]+/[a-z0-9-]*[a-z0-9]")
# Some names of methods are English words: one counts only in front of a number with its interval.
_METHOD = re.compile(rf"\b({'|'.join(sorted(METHODS, key=len, reverse=True))})(?= [\d.,]+ \[)")


def readable(text: str) -> str:
    """Return text with the titles of tasks, and of methods that stand in front of an interval."""
    text = _TASK.sub(lambda found: task_title(found[0]) if found[0] in TASKS else found[0], text)
    return _METHOD.sub(lambda found: title_of(found[0]), text)
