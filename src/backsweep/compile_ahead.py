"""The command `backsweep compile`: compile the kernels ahead of time.

For machine images, clusters and benchmarks. Each area runs briefly in its own process, as many at a time as there are
cores; compiled code goes to the usual cache (`jit.kernel_cache.cache_folder`), where later areas find it.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep.cores import usable_cores
from backsweep.jit import wheel_cache
from backsweep.jit.kernel_cache import cache_folder
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Topological, Uniform
from backsweep.tasks import exact, make

PATIENCE = 0.2
TASKS = ("nchain-5", "minigrid/doorkey", "minigrid/unlock", "sokoban/5x5-1")


def add_commands(subparsers: Any) -> None:
    """Add `compile` to the subparsers of a command line."""
    command = subparsers.add_parser(
        "compile",
        help="compile all kernels now instead of on first use",
        description="Compile all kernels now and cache them for this user, for machine images and clusters.",
    )
    command.add_argument("areas", nargs="*", metavar="AREA", help=f"only some of {', '.join(AREAS)} (default: all)")
    command.add_argument("--here", action="store_true", help="compile one area after another, in this process")
    command.add_argument(
        "--wheel", metavar="FOLDER", help="compile for every processor of this platform, into this folder, for a wheel"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile, and print how long each area took."""
    if unknown := [name for name in arguments.areas if name not in AREAS]:
        raise ValueError(f"areas must be of {', '.join(AREAS)}, got {unknown[0]!r}")
    names = list(arguments.areas or AREAS)
    if importlib.util.find_spec("torch") is None and (trained := [name for name in names if name in WITH_TORCH]):
        if arguments.areas:
            raise ValueError(f"{trained[0]} needs torch: pip install 'backsweep[train]'")
        names = [name for name in names if name not in WITH_TORCH]
    began = time.monotonic()
    if arguments.wheel is not None and not arguments.here:
        return _for_a_wheel(names, arguments.wheel)
    if arguments.wheel is not None:
        wheel_cache.ship_into(Path(arguments.wheel))
    failed = _one_after_another(names) if arguments.here else _side_by_side(names)
    kept = "not kept" if cache_folder() is None else f"kept in {cache_folder()}"
    print(f"{'done' if not failed else 'failed'} after {time.monotonic() - began:.0f} s; {kept}")
    return 1 if failed else 0


def _one_after_another(names: list[str]) -> list[str]:
    for name in names:
        began = time.monotonic()
        AREAS[name]()
        _print_time(name, began)
    return []


def _for_a_wheel(names: list[str], folder: str) -> int:
    """Compile in a process that takes the processor for a plain one and finds nothing in its cache."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**wheel_cache.baseline_environment(), "NUMBA_CACHE_DIR": empty}
        command = [sys.executable, "-m", "backsweep", "compile", "--here", "--wheel", folder, *names]
        return subprocess.run(command, env=environment).returncode


def _side_by_side(names: list[str]) -> list[str]:
    began, failed, waiting = time.monotonic(), [], list(names)
    cores = usable_cores()
    print(f"compiling {', '.join(names)}; up to two minutes if nothing is cached yet ...", flush=True)
    going: dict[str, subprocess.Popen[bytes]] = {}
    try:
        while waiting or going:
            while waiting and len(going) < cores:  # more at a time would compile the same, and none find it cached
                command = [sys.executable, "-m", "backsweep", "compile", "--here", waiting[0]]
                going[waiting.pop(0)] = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            for name in [name for name, process in going.items() if process.poll() is not None]:
                if going.pop(name).returncode:
                    failed.append(name)
                    print(f"  {name} failed; 'backsweep compile --here {name}' shows how", file=sys.stderr)
                else:
                    _print_time(name, began)
            time.sleep(PATIENCE)
    finally:
        for process in going.values():
            process.terminate()
    return failed


def _print_time(name: str, began: float) -> None:
    print(f"  {name}: {time.monotonic() - began:.0f} s", flush=True)


# -- areas ------------------------------------------------------------------------------------------------------------


def use_replay() -> None:
    """Add, plan and draw with every sampler, alone and for several environments; draw without planning."""
    space, actions = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8), gym.spaces.Discrete(4)
    samplers = (
        Uniform(),
        Prioritized(),
        Topological(),
        EpisodicBackward(),
        Mixture([(0.5, Topological()), (0.5, Prioritized())]),
    )
    for sampler in samplers:
        for num_envs in (1, 4):
            replay = Replay(
                space, actions, 400, sampler, num_envs=num_envs, values=GraphValues(), check_autoreset="off"
            )
            pictures = np.random.default_rng(0).integers(0, 256, (61, num_envs, *space.shape), np.uint8)
            first, paid, unending = np.zeros(num_envs, np.int64), np.ones(num_envs), np.zeros(num_envs, np.bool_)
            for step in range(60):
                ended = np.full(num_envs, step % 10 == 9)
                replay.add(pictures[step], first, paid, pictures[step + 1], ended, unending)
            replay.renew_values(lambda seen: np.zeros((len(seen), 4)))
            replay.add(pictures[0], first, paid, pictures[1], ~unending, unending)
            batch = replay.sample(16)
            replay.read(np.arange(len(replay)))  # other kernels handle rows that are not solved yet
            replay.update_priorities(batch.row, np.asarray(batch.reward))
    plain = Replay(space, actions, 400)  # batches without targets are read by another kernel
    plain.add(pictures[0, 0], 0, 0.0, pictures[1, 0], True, False)
    plain.sample(16)


def use_tasks() -> None:
    """Step every family of tasks, and enumerate the states of one."""
    for task in TASKS:
        envs = make(task, 4, seed=0)
        envs.reset()
        for _ in range(20):
            envs.step(envs.action_space.sample())
        envs.close()
    exact("minigrid/doorkey").optimal_values(0.99)


def short_runs() -> dict[str, Any]:
    """Return runs that may share a fleet and use every kernel of training, by method."""
    from backsweep.agent import run_config

    short: dict[str, Any] = {"warmup_steps": 60, "epsilon_steps": 80, "steps": 120, "capacity": 500}
    short |= {"evaluation_interval": 120, "evaluation_episodes": 2, "record_interval": 60}
    # Our settings have another diffusion factor for EBU alone, and a fleet has one for all.
    return {
        method: run_config("minigrid/doorkey", method=method, seed=1, diffusion=0.5, **short)
        for method in ("graph", "graph-backup", "uer", "per", "ter", "ter-shuffled", "ebu")
    }


def use_fleets() -> None:
    """Train a fleet, with evaluations."""
    from backsweep.agent import train_fleet

    with tempfile.TemporaryDirectory() as folder:
        train_fleet(short_runs(), f"{folder}/fleet", quiet=True, checkpoint_interval=0)


def use_training() -> None:
    """Train a run alone, with evaluations."""
    from backsweep.agent import train

    with tempfile.TemporaryDirectory() as folder:
        train(short_runs()["ter"], f"{folder}/alone", quiet=True, checkpoint_interval=0)


AREAS: dict[str, Callable[[], None]] = {
    "fleets": use_fleets,
    "replay": use_replay,
    "tasks": use_tasks,
    "training": use_training,
}
"""The one that takes longest is first, so that it is not left alone at the end."""
WITH_TORCH = ("fleets", "training")
