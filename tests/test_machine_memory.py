"""How much memory the machine or the container has, and how much is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from backsweep import machine_memory
from backsweep.machine_memory import available_memory, physical_memory


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 GiB, 3 of them available, whose files are in the folder that is returned."""
    monkeypatch.setattr(machine_memory, "GROUPS", tmp_path)
    monkeypatch.setattr(machine_memory, "STATE", tmp_path / "meminfo")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2 * 2**20}
    monkeypatch.setattr(machine_memory.os, "sysconf", pages.__getitem__)
    (tmp_path / "meminfo").write_text(f"MemTotal: {8 * 2**20} kB\nMemAvailable: {3 * 2**20} kB\n")
    return tmp_path


def test_a_machine_without_containers(machine: Path) -> None:
    assert physical_memory() == 8 * 2**30
    assert available_memory() == 3 * 2**30
    (machine / "meminfo").unlink()
    assert available_memory() is None


@pytest.mark.parametrize(
    ("limit", "usage", "statistics"),
    [
        ("memory.max", "memory.current", ("memory.stat", "anon 7\ninactive_file")),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            ("memory/memory.stat", "inactive_file 1\ntotal_inactive_file"),
        ),
    ],
)
def test_a_container_with_less(machine: Path, limit: str, usage: str, statistics: tuple[str, str]) -> None:
    (machine / "memory").mkdir()
    (machine / limit).write_text(f"{4 * 2**30}\n")
    (machine / usage).write_text(f"{3 * 2**30}\n")
    assert physical_memory() == 4 * 2**30
    assert available_memory() == 2**30
    name, entry = statistics
    (machine / name).write_text(f"{entry} {2**29}\n")  # files that are only cached can make place
    assert available_memory() == 2**30 + 2**29
    (machine / usage).write_text(f"{5 * 2**30}\n")
    assert available_memory() == 0


def test_a_container_that_may_use_everything(machine: Path) -> None:
    (machine / "memory.max").write_text("max\n")
    (machine / "memory.current").write_text("5\n")
    assert physical_memory() == 8 * 2**30
    assert available_memory() == 3 * 2**30


def test_this_machine() -> None:
    whole, left = physical_memory(), available_memory()
    if whole is not None and left is not None:
        assert 0 < left < whole
