"""Chooses how convolutions are computed on this processor: by a short measurement, which is kept.

The measurement takes a fraction of a second and is kept in the user's cache folder, by processor, torch, threads and
shape of the network. A run keeps the choice it started with, because another one rounds differently.
"""

from __future__ import annotations

import contextlib
import json
import platform
import time
from functools import cache
from pathlib import Path as FilePath

import numpy as np
import torch

from backsweep.agent.learner.convolutions import PATHS, DirectNetwork, Path, network_by
from backsweep.agent.learner.networks import Network
from backsweep.jit.kernel_cache import cache_folder
from backsweep.snapshot import files

FILE = "convolutions.json"
ROUNDS = 7
MARGIN = 0.95
"""Patches are the default: another path must take less than this share of their time."""


def fastest_path(network: Network, batch_size: int, dtype: str) -> Path:
    """Return the fastest path for updates of a network on this processor, kept or measured now.

    Other networks than images have no convolutions, and double precision is for comparisons: both take patches.
    """
    if network.form != "image" or dtype != "float32":
        return "patches"
    return _chosen(_key(network, batch_size), network, batch_size)


@cache
def _chosen(key: str, network: Network, batch_size: int) -> Path:
    if (kept := _kept().get(key)) is not None:
        return kept
    seconds = measure(network, batch_size)
    best = min(PATHS, key=lambda path: seconds[path])
    chosen = best if seconds[best] < MARGIN * seconds["patches"] else "patches"
    _keep(key, chosen)
    return chosen


@torch.no_grad()
def measure(network: Network, batch_size: int, rounds: int = ROUNDS) -> dict[Path, float]:
    """Return the least seconds of an update's forward and backward passes by each path, measured in turns."""
    generator = np.random.default_rng(0)
    flat = network.initial([generator], torch.float32)
    parameters, out = network.layout.views(flat), network.layout.views(torch.zeros_like(flat))
    images = torch.from_numpy(generator.integers(0, 256, (1, 2 * batch_size, *network.input_shape), np.uint8))
    gradient = torch.from_numpy(generator.normal(size=(1, batch_size, network.actions)).astype(np.float32))

    def update(computed: Network | DirectNetwork) -> None:
        prepared = computed.prepare(images, torch.float32)
        computed.forward(parameters, prepared[:, prepared.shape[1] // 2 :])
        _, tape = computed.forward_with_tape(parameters, prepared)
        computed.backward(parameters, tape.first(1, 2), gradient, out)

    networks = {path: network_by(network, path) for path in PATHS}
    seconds: dict[Path, list[float]] = {path: [] for path in PATHS}
    for _ in range(rounds + 1):
        for path, computed in networks.items():
            start = time.perf_counter()
            update(computed)
            seconds[path].append(time.perf_counter() - start)
    # The first round compiles and allocates. Of the others the least: the rest is what else the machine does.
    return {path: min(times[1:]) for path, times in seconds.items()}


def _key(network: Network, batch_size: int) -> str:
    capability = torch.backends.cpu.get_cpu_capability()
    facts = (_processor(), capability, f"torch {torch.__version__}", f"{torch.get_num_threads()} threads")
    return ", ".join((*facts, f"batch {batch_size}", repr(network)))


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in FilePath("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _file() -> FilePath | None:
    folder = cache_folder()
    return None if folder is None else folder / FILE


def _kept() -> dict[str, Path]:
    """Return the kept choices; a file that cannot be read counts as empty, and is replaced."""
    file = _file()
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: path for key, path in found.items() if path in PATHS}


def _keep(key: str, path: Path) -> None:
    file = _file()
    if file is None:
        return
    with contextlib.suppress(OSError):  # without it the next process measures again
        files.stage(file, json.dumps({**_kept(), key: path}, indent=2).encode())
        files.publish(file)
