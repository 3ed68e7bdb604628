"""Small pictures of tasks."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.pictures import png_bytes, task_pictures

LONGEST = 128  # pixels of the longer side


def thumbnails(tasks: Iterable[str]) -> dict[str, str]:
    """Return a picture of each task that can be drawn, as a data URI."""
    found = {task: thumbnail(task) for task in dict.fromkeys(tasks) if task}
    return {task: picture for task, picture in found.items() if picture is not None}


def thumbnail(task: str) -> str | None:
    """Return a task's first level as a data URI; None if the task is unknown or its extra is not installed."""
    try:
        (picture,) = task_pictures(task, 1)
    except (ImportError, ValueError):
        return None
    return "data:image/png;base64," + base64.b64encode(png_bytes(smaller(picture))).decode()


def smaller(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture reduced by averaging to at most 128 pixels on its longer side."""
    factor = -(-max(picture.shape[:2]) // LONGEST)
    height, width = (size // factor for size in picture.shape[:2])
    squares = picture[: height * factor, : width * factor].reshape(height, factor, width, factor, 3)
    result: NDArray[np.uint8] = squares.mean(axis=(1, 3)).round().astype(np.uint8)
    return result
