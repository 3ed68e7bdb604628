"""Facts about the machine, which every measurement records."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("backsweep", "numpy", "numba", "gymnasium", "torch", "cpprb", "stable-baselines3", "tianshou", "torchrl")


def facts() -> dict[str, Any]:
    """Return the facts about this machine for the JSON and the table's caption."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": cpu_field("model name") or platform.processor() or "unknown",
        "vectors": _vectors(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "revision": _revision(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def processor(machine: dict[str, Any]) -> str:
    """Return the processor's name, its vector instructions and cores, as far as they were recorded."""
    parts = [machine["cpu"], machine.get("vectors"), f"{machine['cores']} cores" if "cores" in machine else None]
    return ", ".join(part for part in parts if part)


def measured_on(machine: dict[str, Any]) -> str:
    """Return when and where numbers were measured, as the last sentence of a caption."""
    load = f", load {machine['load']} at the start" if "load" in machine else ""
    return f"Measured on {machine['date']}: {processor(machine)}{load}, Python {machine['python']}."


def cpu_field(name: str) -> str:
    """Return what the system says about the first processor; nothing where it does not say it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.partition(":")[0].strip() == name), "")


def _vectors() -> str | None:
    """Return the widest vector instructions, which the processor's name often does not tell."""
    flags = cpu_field("flags").split()
    return next((title for flag, title in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), None)


def _revision() -> str | None:
    """Return the commit that was measured; a plus marks changes that were not committed."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def idlest_core(seconds: float = 0.2) -> int:
    """Return the core that is idle most during the next moment."""
    if not hasattr(os, "sched_getaffinity"):
        return 0
    allowed = os.sched_getaffinity(0)
    before = _idle_ticks()
    time.sleep(seconds)
    after = _idle_ticks()
    return max(sorted(allowed), key=lambda core: after.get(core, 0) - before.get(core, 0))


def _idle_ticks() -> dict[int, int]:
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    cores = [line.split() for line in lines if line.startswith("cpu") and line[3].isdigit()]
    return {int(fields[0][3:]): int(fields[4]) for fields in cores}
