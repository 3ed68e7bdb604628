"""Pictures of tasks: several levels on one sheet, written as PNG."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.lane_seeds import lane_seeds
from backsweep.tasks.make import make, make_single
from backsweep.tasks.options import checked_int
from backsweep.tasks.registry import Task, find_task

GAP = 12
BACKGROUND = 255
WARM_UP = 12  # random steps between the pictures of a task whose episodes all start in the same state


def task_pictures(task: str | Task, count: int = 6, seed: int = 0) -> list[NDArray[np.uint8]]:
    """Return pictures of `count` levels, or of later frames if every episode starts in the same state."""
    found = find_task(task)
    number = checked_int("count", count, 1)
    if found.kind.draws_levels:
        env = make(found, num_envs=number, seed=seed)
        assert isinstance(env, LaneVectorEnv)
        env.reset()
        return list(env.render())
    single = make_single(found.id, render_mode="rgb_array")
    single.reset(seed=lane_seeds(seed, 1)[0] % (1 << 31))
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    pictures = []
    for _ in range(number):
        frame = single.render()
        assert isinstance(frame, np.ndarray)
        pictures.append(frame.astype(np.uint8))
        for _ in range(WARM_UP):
            _, _, terminated, truncated, _ = single.step(int(generator.integers(len(found.action_names))))
            if terminated or truncated:
                single.reset()
    single.close()
    return pictures


def sheet(pictures: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return the pictures side by side, in rows of three, or of one if they are long and flat."""
    height, width = pictures[0].shape[:2]
    per_row = 1 if width > 4 * height else 3
    rows = -(-len(pictures) // per_row)
    shape = (rows * (height + GAP) + GAP, min(per_row, len(pictures)) * (width + GAP) + GAP, 3)
    canvas = np.full(shape, BACKGROUND, dtype=np.uint8)
    for place, picture in enumerate(pictures):
        top = GAP + (place // per_row) * (height + GAP)
        left = GAP + (place % per_row) * (width + GAP)
        canvas[top : top + height, left : left + width] = picture
    return canvas


def write_png(path: str | os.PathLike[str], image: NDArray[np.uint8]) -> None:
    """Write an RGB image of shape (height, width, 3) as a PNG file."""
    Path(path).write_bytes(png_bytes(image))


def png_bytes(image: NDArray[np.uint8]) -> bytes:
    """Return an RGB image of shape (height, width, 3) as the bytes of a PNG file."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(f"image must be uint8 of shape (height, width, 3), got {image.dtype} of shape {image.shape}")
    height, width = image.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Every row of pixels starts with the number of its filter: 0, none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, 3 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
