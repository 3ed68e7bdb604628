"""The pages about the tasks: docstrings run, pictures are there, the benchmark's table fits in.

The code on the pages is run by tests/test_docs.py.
"""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import backsweep.tasks

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("module", ["exact", "make", "normalisation"])
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


def load_benchmark() -> Any:
    """Return the benchmark as a module, which lies outside the package."""
    spec = importlib.util.spec_from_file_location("benchmark_of_tasks", DOCS.parent / "benchmarks" / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_rewrites_its_block_only(tmp_path: Path) -> None:
    benchmark = load_benchmark()
    page, numbers = tmp_path / "page.md", tmp_path / "numbers.json"
    page.write_text(f"before\n{benchmark.BEGIN}\nold\n{benchmark.END}\nafter\n", encoding="utf-8")
    result = benchmark.Result("minigrid/doorkey", 200.0, 50.0, 1.0, 200.0, 50.0)
    for _ in range(2):
        benchmark.write_results([result], page, numbers)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text
        assert text.count("| minigrid/doorkey | 1 | 50 | 50 | 200 | 200 |") == 1
    assert json.loads(numbers.read_text(encoding="utf-8"))["results"][0]["lanes_ratio"] == 200.0
    assert result.passed
    page.write_text("no block", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold the lines"):
        benchmark.write_results([result], page, numbers)


def test_the_recorded_ratios_reach_their_floors() -> None:
    benchmark = load_benchmark()
    record = json.loads((DOCS / "performance-tasks.json").read_text(encoding="utf-8"))
    results = [benchmark.Result(**one) for one in record["results"]]
    assert [one.task for one in results] == list(benchmark.TASKS)
    assert all(one.passed for one in results)
    assert benchmark.as_markdown(results) in (DOCS / "performance-tasks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("task", "way"), [("minigrid/unlock", "lanes"), ("sokoban/5x5-1", "single")])
def test_measuring_gives_a_rate(task: str, way: str) -> None:
    benchmark = load_benchmark()
    play = {"lanes": benchmark.play_lanes, "single": benchmark.play_single}[way]
    assert play(task, 0.01) > 0
