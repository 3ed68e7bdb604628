"""From nothing to the first sample: a wheel with compiled kernels is built, installed into a fresh venv and timed.

    python -m benchmarks.first_use            build, install, time, print, rewrite the table in docs/performance.md
    python -m benchmarks.first_use --keep     the same, and nothing is rewritten

The wheel is built as `make wheel` builds it, from a copy of the last commit. A fresh virtual environment gets the wheel
and what it depends on, and nothing else. Each timing is a new process with an empty cache: it imports the library, adds
200 transitions of 40x40x3 images, draws a batch and updates its priorities. For comparison the same once without the
wheel's kernels, so that they are compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import facts, measured_on
from benchmarks.records import TITLES, Block, Records, keep, kind_here

ROOT = Path(__file__).resolve().parent.parent
NAME = "first-use"
AIM = 5.0
PROGRAM = """
import json, time
marks = {}
def mark(name):
    marks[name] = (time.time(), time.process_time())
import gymnasium as gym
import numpy as np
from backsweep import Mixture, Prioritized, Replay, Topological
mark("import")
space, actions = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8), gym.spaces.Discrete(7)
replay = Replay(space, actions, 10_000, Mixture([(0.5, Topological()), (0.5, Prioritized())]))
images = np.random.default_rng(0).integers(0, 256, (201, 40, 40, 3), np.uint8)
for step in range(200):
    replay.add(images[step], step % 7, 0.0, images[step + 1], step % 50 == 49, False)
mark("first 200 transitions")
batch = replay.sample(64)
mark("first batch")
replay.update_priorities(batch.row, np.ones(64))
mark("first priorities")
print(json.dumps(marks))
"""


def call(*command: str | Path, **options: Any) -> str:
    """Run a command; return what it printed."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(place: Path) -> tuple[Path, float]:
    """Build the wheel from a copy of the last commit; return it and the seconds that it took."""
    began = time.monotonic()
    source = place / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    compiled = source / "src" / "backsweep" / "compiled"
    call(sys.executable, "-m", "backsweep", "compile", "--wheel", compiled, "replay", cwd=source, env=environment)
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, source)
    (wheel,) = place.glob("backsweep-*.whl")
    return wheel, time.monotonic() - began


def install(place: Path, wheel: Path) -> tuple[Path, float]:
    """Install the wheel into a fresh environment; return its Python and the seconds that it took."""
    began = time.monotonic()
    call(sys.executable, "-m", "venv", place / "venv")
    python = place / "venv" / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    return python, time.monotonic() - began


def first_use(python: Path, place: Path) -> dict[str, tuple[float, float]]:
    """Time one first use; return the seconds since the process was started and those of the processor, by mark."""
    with tempfile.TemporaryDirectory(dir=place) as cache:
        own = ("PYTHONPATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        began = time.time()
        output = call(python, "-c", PROGRAM, cwd=cache, env={**environment, "XDG_CACHE_HOME": cache})
        kernels = len(list(Path(cache).rglob("*.nbi")))
    marks = json.loads(output.splitlines()[-1])
    found = {name: (wall - began, used) for name, (wall, used) in marks.items()}
    found["kernels compiled"] = (kernels, kernels)
    return found


def medians(runs: list[dict[str, tuple[float, float]]]) -> dict[str, list[float]]:
    """Return the medians of some processes: seconds on the clock and of the processor, by mark."""
    return {name: [statistics.median(run[name][column] for run in runs) for column in (0, 1)] for name in runs[0]}


def table(records: Records) -> str:
    """Return the table as Markdown, with two columns for each kind of processor."""
    ways = {"shipped": "with the wheel's kernels", "compiled": "compiled on first use"}
    columns = [(kind, way) for way in ways for kind, record in records.items() if record.get(way)]
    titles = [title for kind, way in columns for title in (f"{ways[way]}, {kind}", "CPU")]
    lines = [f"| from the start of the process to | {' | '.join(titles)} |", "| --- |" + " ---: |" * len(titles)]
    for name in next(iter(records.values()))["shipped"]:
        pairs = [records[kind][way][name] for kind, way in columns]
        if name == "kernels compiled":
            shown = [text for count, _ in pairs for text in (f"{count:.0f}", "")]
        else:
            shown = [f"{seconds:.1f} s" for pair in pairs for seconds in pair]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n\n".join(["\n".join(lines), *map(_told, records.values())])


def _told(record: dict[str, Any]) -> str:
    return (
        f"{measured_on(record['machine'])} The wheel has {record['megabytes']:.1f} MB; it was built in "
        f"{record['building']:.0f} s and installed with numpy, numba and gymnasium in {record['installing']:.0f} s. "
        f"Medians of {record['processes']} processes; aim: the first batch within {AIM:.0f} s of the processor."
    )


BLOCKS = (
    Block(
        NAME,
        ROOT / "docs" / "performance.md",
        "<!-- benchmarks.first_use begin -->",
        "<!-- benchmarks.first_use end -->",
        table,
    ),
)


def main() -> int:
    """Build, install, time, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the page as it is")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--shipped-only", action="store_true", help="leave out the comparison, which compiles")
    options = parser.parse_args()
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, building = build(place)
        python, installing = install(place, wheel)
        record: dict[str, Any] = {
            "machine": machine,
            "megabytes": wheel.stat().st_size / 1e6,
            "building": building,
            "installing": installing,
            "processes": options.runs,
            "shipped": medians([first_use(python, place) for _ in range(options.runs)]),
        }
        if not options.shipped_only:
            (kernels,) = (place / "venv").glob("lib/python*/site-packages/backsweep/compiled")
            kernels.rename(place / "compiled")
            record["compiled"] = medians([first_use(python, place)])
    print(table({TITLES[kind_here()]: record}))
    if not options.keep:
        keep(NAME, record)
        BLOCKS[0].write()
    return 0 if record["shipped"]["first batch"][1] <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
