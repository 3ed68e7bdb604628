"""The memory of this machine, or of the container that the process runs in."""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""Where Linux says how much memory the processes of a container may use."""
STATE = Path("/proc/meminfo")


def physical_memory() -> int | None:
    """Return the bytes of memory of this machine, fewer if its container may not use all; None if unknown."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return min([whole, *(limit for limit, _ in _container())])


def available_memory() -> int | None:
    """Return the bytes that can still be allocated, by all processes together; None if unknown."""
    free = _entry(STATE, "MemAvailable:")
    if free is None:
        return None
    return min([1024 * free, *(max(0, limit - used) for limit, used in _container())])


def _container() -> list[tuple[int, int]]:
    """Return the limit of the container and what it uses, without files that are cached; nothing if there is none."""
    found = []
    for limit, usage, statistics, cached in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            "memory/memory.stat",
            "total_inactive_file",
        ),
    ):
        most, used = _entry(GROUPS / limit), _entry(GROUPS / usage)
        if most is not None and used is not None:
            found.append((most, used - (_entry(GROUPS / statistics, cached) or 0)))
    return found


def _entry(path: Path, name: str = "") -> int | None:
    """Return the number after a name in a file, or its only number; None if it is not there."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return None
    numbers = [words[1] if name else words[0] for words in lines if words and (not name or words[0] == name)]
    return int(numbers[0]) if numbers and numbers[0].isdecimal() else None
