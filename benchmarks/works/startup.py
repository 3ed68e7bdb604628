"""How long importing takes, and the first use with and without compiled kernels on disk."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

PROGRAM = """
import json, pathlib, sys, time
start = time.perf_counter()
if sys.argv[1]:
    import backsweep.jit.wheel_cache
    backsweep.jit.wheel_cache.FOLDER = pathlib.Path(sys.argv[1])
import backsweep
imported = time.perf_counter()
import gymnasium as gym, numpy as np
replay = backsweep.Replay(
    gym.spaces.Box(0, 255, (40, 40, 3), np.uint8), gym.spaces.Discrete(3), 1000,
    backsweep.Mixture([(0.5, backsweep.Topological()), (0.5, backsweep.Prioritized())]),
)
frame = np.zeros((40, 40, 3), np.uint8)
replay.add(frame, 0, 1.0, frame + 1, True, False)
batch = replay.sample(8)
replay.update_priorities(batch.row, np.ones(8))
used = time.perf_counter() - imported
print(json.dumps({"import": imported - start, "use": used, "cpu": time.process_time()}))
"""


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Start fresh processes; with ``cold`` nothing is in their cache of kernels, with ``wheel`` a wheel has them."""
    if not params["cold"]:
        starts = [_start(dict(os.environ))[0] for _ in range(params["repeats"])]
        return {
            "import_seconds": statistics.median(start["import"] for start in starts),
            "first_use_seconds": statistics.median(start["use"] for start in starts),
        }
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as wheel:
        if params.get("wheel"):
            command = [sys.executable, "-m", "backsweep", "compile", "--wheel", wheel, "replay"]
            subprocess.run(command, check=True, capture_output=True, timeout=600)
        cold, said = _start({**os.environ, "NUMBA_CACHE_DIR": empty}, wheel if params.get("wheel") else "")
    return {
        "import_seconds": cold["import"],
        "first_use_seconds": cold["import"] + cold["use"],
        "cpu_seconds": cold["cpu"],
        "says_so": float("compiling" in said),
    }


def _start(environment: dict[str, str], wheel: str = "") -> tuple[dict[str, float], str]:
    command = [sys.executable, "-c", PROGRAM, wheel]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers, done.stderr


def warm_up() -> None:
    """Have every kernel compiled and kept on disk."""
    import tempfile

    from benchmarks.libraries.base import Wanted
    from benchmarks.libraries.ours import SAMPLERS, Ours
    from benchmarks.streams import make_stream

    for kind, shape, dtype, variant in (
        ("grid", (8, 8, 3), "uint8", ""),
        ("fresh", (4,), "float32", ""),
        ("numbers", (), "", ""),
        ("stacked", (8, 8), "uint8", "frame_stack"),
    ):
        for method in SAMPLERS:
            stream = make_stream(kind, shape, dtype, states=50)
            ours = Ours(Wanted(stream.frames.space, 64, method=method, variant=variant))
            ours.fill(stream, 100)
            held = ours.replay.sample(8)
            ours.replay.update_priorities(held.row, held.reward)
            with tempfile.TemporaryDirectory() as folder:
                ours.replay.save(folder)
                type(ours.replay).load(folder)
