"""How long a fleet's act and update take on the learner's device.

    python -m benchmarks.learner --device cuda --runs 25 50 100 200
    python -m benchmarks.learner --device cuda --runs 25 100 --engines fused graphs compiled autotuned
    python -m benchmarks.learner --device cuda --runs 25 128 --kernels                 and where an update's time goes
    python -m benchmarks.learner --choices                     with and without each choice of how kernels work
    python -m benchmarks.learner --limits                      how many steps an H200 could do; needs no GPU

An environment step of every run costs one act and a quarter of an update. The table says how many environment steps a
second that allows in all, and which limit is the nearest: bytes that must move (each parameter, moment, gradient,
picture and activation once for each use) over the memory's bandwidth, or products over the arithmetic's rate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from unittest import mock

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule

CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
BANDWIDTH = 4.8e12  # bytes a second, an H200's by its data sheet
RATE = 990e12  # half-precision operations a second, likewise
STEPS_PER_UPDATE = 4
KEPT_ROWS = 20_000
NEW_ROWS = 2  # of a batch, which have no target of the graph yet
ENGINES = {
    "fused": "the hand-written Triton kernels, recorded as CUDA graphs: what training uses for images",
    "graphs": "torch's own operations, recorded as CUDA graphs",
    "compiled": "torch.compile over torch's own operations, recorded as CUDA graphs",
    "autotuned": "the same with mode max-autotune",
    "plain": "torch's own operations, launched one by one",
}

KERNELS = "backsweep.agent.learner.triton"
CHOICES: dict[str, tuple[str, Callable[..., object] | None]] = {
    "as it is": (KERNELS, None),
    "Adam apart": (f"{KERNELS}.fused.steps_with_gradients", lambda _: False),
    "layers whole": (f"{KERNELS}.tiles.forward_pieces", lambda *_: 1),
    "acts like batches": (f"{KERNELS}.tiles.few_rows", lambda _, rows: rows <= 16),
}
"""Which function makes a choice, and what takes its place."""


@dataclass(frozen=True)
class Task:
    """The observations and batches of a task."""

    name: str
    network: Network
    batch_size: int


TASKS = (
    Task("MiniGrid", Network("image", (40, 40, 3), 7, CONVOLUTIONS, (512,), 1 / 255), 64),
    Task("Sokoban", Network("image", (84, 84, 3), 9, CONVOLUTIONS, (512,), 1 / 255), 32),
)


def products_of_layers(network: Network) -> list[int]:
    """Return how many products each layer takes for one image."""
    layers = [stage.places * stage.patch * stage.outputs for stage in network.stages]
    return layers + [inputs * outputs for inputs, outputs in pairwise(network.widths)]


def operations_and_bytes(task: Task, runs: int) -> tuple[float, float]:
    """Return what one update must compute and move: three forward passes of the batch and one backward."""
    network, batch = task.network, task.batch_size
    layers = products_of_layers(network)
    operations = 2 * batch * (3 * sum(layers) + 2 * sum(layers) - layers[0])
    picture = int(np.prod(network.input_shape))
    flowing = sum(stage.places * stage.outputs for stage in network.stages) + sum(network.linear)
    # Each activation is written and read by the next layer; in the backward pass so are gradients and the mask.
    activations = 2 * batch * flowing * (3 * 2 + 2 + 2)
    parameters = 4 * network.layout.size * (2 + 1 + 6)  # two networks read, one once more back, Adam's step
    return runs * float(operations), runs * float(activations + parameters + 4 * batch * picture)


def limit(task: Task) -> str:
    """Return a line about the steps a second that an H200's memory and its arithmetic would allow, many runs at once.

    An act reads each parameter and the picture once.
    """
    operations, moved = operations_and_bytes(task, 1)
    parameters = task.network.layout.size
    step_bytes = 4 * parameters + int(np.prod(task.network.input_shape)) + moved / STEPS_PER_UPDATE
    step_operations = 2 * sum(products_of_layers(task.network)) + operations / STEPS_PER_UPDATE
    by_memory, by_arithmetic = BANDWIDTH / step_bytes, RATE / step_operations
    return (
        f"{task.name:9} {parameters:10,} parameters, {step_bytes / 1e6:5.1f} MB and {step_operations / 1e9:.2f} "
        f"billion operations a step: {by_memory:,.0f} steps/s by its memory, {by_arithmetic:,.0f} by its arithmetic"
    )


def median_seconds(call: Callable[[], None], wait: Callable[[], None], repeats: int, on_gpu: bool) -> float:
    """Return the median time of a call on the device; enqueueing runs ahead, as it does in training."""
    for _ in range(5):
        call()
    wait()
    if not on_gpu:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return float(np.median(times))
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        wait()
        times.append((time.perf_counter() - start) / repeats)
    return float(np.median(times))


def compile_learner(learner: Learner, mode: str) -> None:
    """Let torch.compile make the kernels of an update; the executor records them, as for every engine."""
    options = {} if mode == "compiled" else {"mode": "max-autotune-no-cudagraphs"}
    torch.set_float32_matmul_precision("high")  # TF32, which is as exact as what the fused kernels do
    learner.learn = torch.compile(learner.learn, **options)  # type: ignore[method-assign, call-overload]


def filled(task: Task, runs: int, device: str, rule: TargetRule, engine: str) -> Executor:
    """Return an executor with random pictures and a random batch."""
    generator = np.random.default_rng(0)
    learner = Learner(task.network, rule, LearnerSettings(device=device), (0,))
    learner.keep([0] * runs)  # the same run many times: drawing them all would take longer than the measurement
    rows = KEPT_ROWS if device == "cuda" else 500
    kept = DeviceObservations(rows, task.network.input_shape, np.uint8, learner.device)
    kept.rows.random_(0, 256)
    if device == "cuda":
        torch.cuda.synchronize()
    if engine in ("compiled", "autotuned"):
        compile_learner(learner, engine)
    fused = None if engine == "fused" else False
    executor = Executor(learner, kept, task.batch_size, fused=fused, graphs=engine != "plain")
    shape = executor.action.shape
    executor.first[:], executor.second[:] = generator.integers(0, rows, (2, *shape))
    executor.current[:] = generator.integers(0, rows, runs)
    executor.action[:] = generator.integers(0, task.network.actions, shape)
    executor.reward[:] = generator.normal(size=shape)
    executor.discount[:] = 0.99
    executor.weight[:] = 1.0
    if executor.known is not None:
        executor.known[:] = np.nan if rule.kind == "backward" else 0.0
        executor.known[:, :NEW_ROWS] = np.nan
    return executor


def row(task: Task, runs: int, device: str, rule: TargetRule, engine: str) -> str:
    """Return one line of the table."""
    executor = filled(task, runs, device, rule, engine)
    on_gpu = device == "cuda"
    repeats = 30 if on_gpu else 3
    act = median_seconds(executor.act, executor.wait, repeats, on_gpu)
    update = median_seconds(executor.update, executor.wait, repeats, on_gpu)
    operations, moved = operations_and_bytes(task, runs)
    limits = {"bytes": moved / BANDWIDTH, "arithmetic": operations / RATE}
    nearest = max(limits, key=lambda name: limits[name])
    steps = STEPS_PER_UPDATE * runs / (STEPS_PER_UPDATE * act + update)
    return (
        f"{task.name:9} {rule.kind:9} {engine:9} {runs:5} {1e3 * act:9.3f} {1e3 * update:10.3f} {steps:13,.0f}"
        f"   {nearest} {1e3 * limits[nearest]:.3f} ms, {limits[nearest] / update:.0%} of it reached"
    )


def side_by_side(task: Task, runs: int, rule: TargetRule, streams: int) -> str:
    """Return a line about several fleets that share a GPU, each with its own stream."""
    executors = [filled(task, runs, "cuda", rule, "fused") for _ in range(streams)]

    def go() -> None:
        for executor in executors:
            for _ in range(STEPS_PER_UPDATE):
                executor.act()
            executor.update()

    def wait() -> None:
        for executor in executors:
            executor.wait()

    seconds = median_seconds(go, wait, 30, on_gpu=True)
    return (
        f"{task.name:9} {rule.kind:9} {streams} x {runs} runs: {1e6 * seconds:.0f} us for an update and "
        f"{STEPS_PER_UPDATE} acts of each, {STEPS_PER_UPDATE * streams * runs / seconds:,.0f} env steps/s"
    )


def kernel_times(task: Task, runs: int, rule: TargetRule, repeats: int = 20) -> list[str]:
    """Return lines about the kernels of an act and of an update: how often each runs, and how long in all.

    Independent kernels of an update run at the same time, so their times add up to more than the update takes.
    """
    executor = filled(task, runs, "cuda", rule, "fused")
    lines = []
    for name, call in (("act", executor.act), ("update", executor.update)):
        for _ in range(5):
            call()
        executor.wait()
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for _ in range(repeats):
                call()
            executor.wait()
        lines.append(f"{task.name} {rule.kind}, {runs} runs, {name}:")
        found = [entry for entry in profiled.key_averages() if entry.device_time_total > 0]
        for entry in sorted(found, key=lambda entry: -entry.device_time_total):
            times, microseconds = entry.count / repeats, entry.device_time_total / repeats
            lines.append(f"  {entry.key[:40]:40} {times:4.0f} times {microseconds:8.1f} us")
    return lines


def with_choice(task: Task, runs: int, replaced: Callable[..., object] | None, name: str) -> tuple[float, float]:
    """Return the seconds of an act and an update while another function makes one of the kernels' choices."""
    module, _, function = name.rpartition(".")
    usual = nullcontext() if replaced is None else mock.patch.object(import_module(module), function, replaced)
    with usual:
        executor = filled(task, runs, "cuda", TargetRule(), "fused")
        return (
            median_seconds(executor.act, executor.wait, 30, on_gpu=True),
            median_seconds(executor.update, executor.wait, 30, on_gpu=True),
        )


def choices() -> None:
    """Print how long acts and updates take, as they are and without each choice."""
    print("milliseconds of an act and of an update")
    print(f"{'task':9} {'runs':>5}" + "".join(f"  {name:>20}" for name in CHOICES))
    for name, runs in (("Sokoban", 5), ("Sokoban", 25), ("MiniGrid", 10), ("MiniGrid", 128)):
        task = next(task for task in TASKS if task.name == name)
        line = f"{name:9} {runs:5}"
        for function, replaced in CHOICES.values():
            act, update = with_choice(task, runs, replaced, function)
            line += f"  {1e3 * act:9.3f} {1e3 * update:10.3f}"
        print(line, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", type=int, nargs="+", default=[25, 50, 100, 200])
    parser.add_argument("--rules", nargs="+", default=["one-step"], choices=["one-step", "graph", "backward", "discor"])
    parser.add_argument("--engines", nargs="+", default=["fused"], choices=list(ENGINES), help=f"{ENGINES}")
    parser.add_argument("--tasks", nargs="+", default=[task.name for task in TASKS])
    parser.add_argument("--streams", type=int, nargs="+", default=[], help="also this many fleets at once on a GPU")
    parser.add_argument("--kernels", action="store_true", help="also the time of each kernel, on a GPU")
    parser.add_argument("--choices", action="store_true", help="only acts and updates without each choice, on a GPU")
    parser.add_argument("--limits", action="store_true", help="only what an H200's data sheet would allow")
    options = parser.parse_args()
    if options.limits:
        print("\n".join(limit(task) for task in TASKS if task.name in options.tasks))
        return
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{name}, torch {torch.__version__}")
    if options.choices:
        choices()
        return
    print(
        f"{'task':9} {'rule':9} {'engine':9} {'runs':>5} {'act ms':>9} {'update ms':>10} {'env steps/s':>13}"
        "   nearest limit (H200)"
    )
    for task in [task for task in TASKS if task.name in options.tasks]:
        for kind in options.rules:
            for runs in options.runs:
                for engine in options.engines:
                    print(row(task, runs, options.device, TargetRule(kind=kind), engine), flush=True)
                for streams in options.streams if options.device == "cuda" else []:
                    print(side_by_side(task, runs, TargetRule(kind=kind), streams), flush=True)
                if options.kernels and options.device == "cuda":
                    print("\n".join(kernel_times(task, runs, TargetRule(kind=kind))), flush=True)


if __name__ == "__main__":
    main()
