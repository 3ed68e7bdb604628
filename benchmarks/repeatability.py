"""How often a repeated update on the device differs in some bit, also while other processes use the device.

    python -m benchmarks.repeatability --device cuda --load 12

Repeats one act and one update from the same parameters and the same batch, and counts how often each result differs
from the first: the best actions, the TD errors, and the gradient of each layer. The layers whose gradients differ say
where to look: a fault in the forward pass shows in all of them, a fault in a layer's own kernel in that layer alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter

import torch

from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.rules import TargetRule
from benchmarks.learner import ENGINES, TASKS, filled


def outcome(executor: Executor, start: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return everything that an act and an update give, from the parameters and moments of `start`."""
    learner = executor.learner
    tensors = learner.tensors()
    for name, value in start.items():
        tensors[name].copy_(value)
    if learner.device.type == "cuda":
        torch.cuda.synchronize()
    learner.optimiser.steps = 0
    reward = executor.reward.copy()
    executor.act()
    executor.update()
    executor.wait()
    executor.reward[:] = reward
    results = {
        "best action": torch.from_numpy(executor.best.copy()),
        "TD error": torch.from_numpy(executor.td_error.copy()),
    }
    # From moments of zero, Adam's mean is the gradient times a constant; not every gradient is written to memory.
    means = learner.network.layout.views(learner.optimiser.mean)
    results |= {f"gradient of {name}": tensor.clone() for name, tensor in means.items()}
    results["parameters"] = learner.online.clone()
    return results


def differences(executor: Executor, repeats: int) -> Counter[str]:
    """Return how often each result was not equal to the first one, to the last bit."""
    start = {name: tensor.clone() for name, tensor in executor.learner.tensors().items()}
    first = outcome(executor, start)
    found: Counter[str] = Counter(dict.fromkeys(first, 0))
    for _ in range(repeats):
        again = outcome(executor, start)
        found.update(name for name, tensor in first.items() if not torch.equal(tensor, again[name]))
    return found


def main() -> int:
    """Print a table; return 1 if anything differed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2_000)
    parser.add_argument("--load", type=int, default=0, help="other processes that do the same at the same time")
    parser.add_argument("--engine", default="fused", choices=list(ENGINES))
    parser.add_argument("--tasks", nargs="+", default=[task.name for task in TASKS])
    parser.add_argument("--seconds", type=float, default=0.0, help="only keep the device busy for this long")
    options = parser.parse_args()
    tasks = [task for task in TASKS if task.name in options.tasks]
    if options.seconds:
        executor, end = filled(tasks[-1], options.runs, options.device, TargetRule(), options.engine), 0.0
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            executor.act()
            executor.update()
            executor.wait()
        return 0
    busy = [sys.executable, "-m", "benchmarks.repeatability", "--device", options.device, "--seconds", "600"]
    others = [subprocess.Popen([*busy, "--runs", str(options.runs)]) for _ in range(options.load)]
    differed = 0
    try:
        for task in tasks:
            executor = filled(task, options.runs, options.device, TargetRule(), options.engine)
            if others:
                time.sleep(15)  # until the others have compiled and begun
            found = differences(executor, options.repeats)
            print(f"{task.name}, {options.engine}, {options.runs} runs, {options.load} other processes:")
            for name, count in found.items():
                print(f"  {name:28} differed {count} of {options.repeats} times", flush=True)
            differed += sum(found.values())
    finally:
        for other in others:
            other.kill()
    return int(differed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
