"""The pages about the tasks: their examples run, their pictures are there, the benchmark's table fits in."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

import backsweep.envs

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_examples_run() -> None:
    text = (DOCS / "tasks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/tasks.md", "docs/tasks.md", 0)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 20
    assert result.failed == 0


@pytest.mark.parametrize("module", ["exact", "making", "normalisation"])
def test_docstrings_run(module: str) -> None:
    # As an attribute `envs.exact` is the function; the module goes by its full name.
    result = doctest.testmod(sys.modules[f"{backsweep.envs.__name__}.{module}"])
    assert result.attempted > 0
    assert result.failed == 0


def test_pictures_are_there() -> None:
    text = (DOCS / "tasks.md").read_text(encoding="utf-8")
    names = re.findall(r"\]\((images/[^)]+)\)", text)
    assert {"images/nchain.png", "images/minigrid.png", "images/sokoban.png"} <= set(names)
    for name in names:
        assert (DOCS / name).read_bytes().startswith(b"\x89PNG")
