"""NVIDIA's MPS, with which the kernels of several processes run on a GPU at the same time instead of in turns."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
PATIENCE = 30.0


def is_running() -> bool:
    """Return whether MPS is running."""
    pipes = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    return (pipes / "control").exists()


def is_available() -> bool:
    """Return whether MPS is running or can be started."""
    return is_running() or shutil.which(CONTROL) is not None


@contextlib.contextmanager
def shared(device: str, processes: int) -> Iterator[str | None]:
    """Share a GPU between processes while the context lasts; yields a note for the user, or None.

    MPS is started if it is needed and not running, and stopped at the end if it was started here.
    """
    if not device.startswith("cuda") or processes < 2 or is_running():
        yield None
        return
    if (reason := _start()) is not None:
        yield (
            f"NVIDIA's MPS could not be started ({reason}). Without it, processes take turns on the GPU and are "
            "several times slower; --jobs 1 uses one process"
        )
        return
    try:
        yield "started NVIDIA's MPS, so that the processes share the GPU; it stops with this command"
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([CONTROL], input=b"quit\n", capture_output=True, timeout=PATIENCE, check=False)


def _start() -> str | None:
    """Start MPS; return why not if it fails."""
    try:
        done = subprocess.run([CONTROL, "-d"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    except FileNotFoundError:
        return f"{CONTROL} was not found"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        return (done.stderr or done.stdout).strip() or f"{CONTROL} -d exited with {done.returncode}"
    return None
