"""The progress of a run, from the end of its record file."""

from __future__ import annotations

import os
import re
from pathlib import Path

_STEP = re.compile(rb'"step":(\d+)')


def last_step(path: Path) -> int:
    """Return the step of the last record in a file, 0 if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4096))
            steps = _STEP.findall(file.read())
    except OSError:
        return 0
    return int(steps[-1]) if steps else 0
