"""Imported by the process that rounds of attacks are forked from: what is loaded here is loaded once for all rounds."""

from __future__ import annotations

import tempfile
from pathlib import Path

from backsweep import Replay
from backsweep.agent import resume, train_fleet  # noqa: F401  with torch, which takes seconds
from crafting import SPACES, drive, good_save

with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
    for kind in SPACES:
        good_save(Path(folder, kind), kind)
        drive(Replay.load(Path(folder, kind)), kind, 40, 1)
