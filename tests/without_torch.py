"""Runs every test that needs no torch where torch is not installed: `make test-library`.

    PYTHONPATH=tests python -m pytest -p without_torch

A file or a test that stops because torch, or a package that needs it, is missing is skipped. This is a plugin that must
be named, so that the whole suite still fails where torch should be there and is not.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

NOT_HERE = {"torch", "triton", "stable_baselines3", "sb3_contrib", "tianshou", "torchrl", "tensordict", "ray"}
"""torch and what needs it."""
NO_TORCH = "No module named 'torch'"
LEFT_OUT = ("gpu", "lab/report", "test_site.py", "test_site_browser.py")
"""What needs torch in its own conftest.py or in all of its files, and the site of the documentation."""


def pytest_configure() -> None:
    """Refuse to run where torch is: the whole suite would do."""
    if importlib.util.find_spec("torch") is not None:
        raise pytest.UsageError("torch is installed here: run the whole suite, without -p without_torch")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot even be looked into."""
    return True if any(collection_path == Path(__file__).parent / name for name in LEFT_OUT) else None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def missing(error: BaseException | None) -> str | None:
    """Return the package whose absence led to an error, or None if the reason was another."""
    for one in causes(error):
        name = (one.name or "").partition(".")[0] if isinstance(one, ModuleNotFoundError) else ""
        if name in NOT_HERE:
            return name
        if isinstance(one, AssertionError) and NO_TORCH in str(one):  # what another process printed
            return "torch"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test that imports torch, or calls what does."""
    try:
        return (yield)
    except Exception as error:
        if name := missing(error):
            pytest.skip(f"needs {name}")
        raise


class Module(pytest.Module):
    """A test file that is skipped if it imports torch."""

    def _getobj(self) -> Any:
        try:
            return super()._getobj()
        except pytest.Collector.CollectError as error:
            if name := missing(error):
                pytest.skip(f"needs {name}", allow_module_level=True)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Collect test files by the class above."""
    return Module.from_parent(parent, path=module_path)
