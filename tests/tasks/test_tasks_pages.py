"""The pages about the tasks: docstrings run, pictures are there, the benchmark measures.

The code on the pages is run by tests/test_docs.py.
"""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import backsweep.tasks

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("module", ["exact", "make", "options", "registry"])
def test_docstrings_run(module: str) -> None:
    # As an attribute `tasks.exact` is the function; the module goes by its full name.
    result = doctest.testmod(sys.modules[f"{backsweep.tasks.__name__}.{module}"])
    assert result.attempted > 0
    assert result.failed == 0


def test_pictures_are_there() -> None:
    text = (DOCS / "tasks.md").read_text(encoding="utf-8")
    names = re.findall(r"\]\((images/[^)]+)\)", text)
    assert {"images/nchain.png", "images/minigrid.png", "images/sokoban.png"} <= set(names)
    for name in names:
        assert (DOCS / name).read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the benchmark of the tasks, which lies outside the package."""
    monkeypatch.syspath_prepend(str(DOCS.parent))
    return importlib.import_module("benchmarks.tasks")


def test_the_recorded_ratios_reach_their_floors(benchmark: Any) -> None:
    for record in importlib.import_module("benchmarks.records").read(benchmark.NAME).values():
        results = [benchmark.Result(**one) for one in record["results"]]
        # Atari's were added after the record of one kind of processor was made.
        assert [one.task for one in results] in (list(benchmark.TASKS), list(benchmark.TASKS[:-2]))
        assert all(one.passed for one in results)


@pytest.mark.parametrize(
    ("task", "way"),
    [
        ("minigrid/unlock", "lanes"),
        ("sokoban/5x5-1", "single"),
        ("minigrid/doorkey", "package"),
        ("atari/pong", "package"),
    ],
)
def test_measuring_gives_a_rate(benchmark: Any, task: str, way: str) -> None:
    play = getattr(benchmark, f"play_{way}")
    assert play(task, 0.01) > 0
