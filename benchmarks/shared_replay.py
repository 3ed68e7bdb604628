"""How fast a shared replay takes rows in and hands batches out, with 1 to 8 collectors on this machine.

python -m benchmarks.shared_replay [--seconds 5] [--out benchmarks/results/shared-replay.json]

Collectors only write: 8 environments each with precomputed steps, in chunks of 64 steps. The learner only takes batches
of 256 and reports errors. So the numbers are bounds; real environments and networks need additional time. All processes
share the machine's cores, so more collectors than cores cannot be faster.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray

from backsweep import Prioritized, Uniform
from backsweep.integrations.ray import SharedReplay
from backsweep.samplers import Sampler
from benchmarks.machine import facts

ENVS, CHUNK, BATCH, ROWS = 8, 64, 256, 100_000
SPACES: dict[str, gym.spaces.Box] = {
    "8 floats": gym.spaces.Box(-np.inf, np.inf, (8,), np.float32),
    "40x40x3 bytes": gym.spaces.Box(0, 255, (40, 40, 3), np.uint8),
}
SAMPLERS: dict[str, Sampler] = {"uniform": Uniform(), "prioritized": Prioritized()}


def steps_of(space: gym.spaces.Box, count: int, seed: int) -> Any:
    """Return observations that never repeat: (count + 1, environments, ...)."""
    generator = np.random.default_rng(seed)
    shape = (count + 1, ENVS, *space.shape)
    if space.dtype == np.uint8:
        return generator.integers(0, 256, shape, dtype=np.uint8)
    return generator.normal(size=shape).astype(np.float32)


@ray.remote(num_cpus=0)
class Collector:
    """Writes as fast as it can."""

    def __init__(self, shared: SharedReplay, space: gym.spaces.Box, number: int) -> None:
        self._observations = steps_of(space, 256, number)
        self._writer = shared.writer(ENVS, chunk=CHUNK, shard=number)
        self._step = 0
        self._write(4)  # compiles what has to be
        self._writer.flush()

    def _write(self, chunks: int) -> None:
        action, reward = np.zeros(ENVS, np.int64), np.ones(ENVS)
        no, yes = np.zeros(ENVS, np.bool_), np.ones(ENVS, np.bool_)
        for _ in range(chunks * CHUNK):
            place = self._step % 256
            now, following = self._observations[place], self._observations[place + 1]
            self._writer.add(now, action, reward, following, no, yes if place == 255 else no)
            self._step += 1

    def ready(self) -> bool:
        """Say that it is there."""
        return True

    def run(self, begin: float, seconds: float) -> tuple[int, float]:
        """Write for some seconds from a moment on; return the rows acknowledged in that time and its CPU seconds."""
        before, cpu = None, 0.0
        while (now := time.time()) < begin + seconds:
            if before is None and now >= begin:
                before, cpu = self._writer.acknowledged, time.process_time()
            self._write(1)
        assert before is not None
        return int(self._writer.acknowledged - before), time.process_time() - cpu


def learn(shared: SharedReplay, begin: float, seconds: float, group: int) -> float:
    """Take batches for some seconds from a moment on; return how many a second."""
    count = 0
    for batch in shared.batches(BATCH, prefetch=4, group=group):
        shared.update_priorities(batch.row, np.ones(BATCH))
        if (now := time.time()) >= begin + seconds:
            break
        count += now >= begin
    return count / seconds


def measure(space: str, sampler: str, collectors: int, learner: bool, **options: Any) -> dict[str, float]:
    """Return rows and batches a second of one arrangement."""
    seconds, group = options.pop("seconds"), options.pop("group", 1)
    box = SPACES[space]
    shared = SharedReplay(
        box, gym.spaces.Discrete(4), ROWS, SAMPLERS[sampler], lanes=8 * ENVS, actor_options={"num_cpus": 0}, **options
    )
    made: Any = Collector
    collectors_made = [made.remote(shared, box, number) for number in range(max(collectors, len(shared.shards)))]
    ray.get([each.ready.remote() for each in collectors_made])
    shared.sample(BATCH, timeout=60)
    begin = time.time() + 1.0
    running = [each.run.remote(begin, seconds) for each in collectors_made[:collectors]]
    time.sleep(max(0.0, begin - time.time()))
    used = sum(numbers["cpu_seconds"] for numbers in shared.stats())
    batches = learn(shared, begin, seconds, group) if learner else 0.0
    written = ray.get(running)
    used = sum(numbers["cpu_seconds"] for numbers in shared.stats()) - used
    for each in collectors_made:
        ray.kill(each)
    shared.close()
    rows = sum(count for count, _ in written)
    found = {"rows_per_second": rows / seconds, "batches_per_second": batches, "load": os.getloadavg()[0]}
    # CPU time per row or batch does not depend on other processes, unlike rows per second.
    if rows:
        found["collector_cpu_us_per_row"] = 1e6 * sum(cpu for _, cpu in written) / rows
    if rows and not learner:
        found["shard_cpu_us_per_row"] = 1e6 * used / rows
    if learner and not collectors:
        found["shard_cpu_us_per_batch"] = 1e6 * used / (batches * seconds)
    return found


def arrangements() -> list[dict[str, Any]]:
    """Return what is measured."""
    base: dict[str, Any] = {"space": "8 floats", "sampler": "prioritized", "collectors": 4, "learner": False}
    images = {**base, "space": "40x40x3 bytes", "sampler": "uniform", "collectors": 2}
    reading = {"collectors": 0, "learner": True}
    return [
        *({**base, "collectors": count} for count in (1, 2, 4, 8)),
        *({**base, "collectors": count, "journal": True} for count in (1, 4)),
        {**base, "shards": 2},
        *({**base, **reading, "group": group} for group in (1, 8)),
        {**base, "learner": True, "group": 8},
        images,
        {**images, **reading},
    ]


def main() -> None:
    """Measure all arrangements, print a table and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise other processes go first
    ray.init(num_cpus=2, object_store_memory=200 << 20, include_dashboard=False, log_to_driver=False)
    machine = facts()
    results = []
    print("| observation | rows drawn | shards | journal | collectors | rows/s in | batches/s out | shard's CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for arrangement in arrangements():
        options = dict(arrangement)
        with tempfile.TemporaryDirectory() as folder:
            if options.pop("journal", False):
                options["journal"] = Path(folder) / "journal"
            found = measure(seconds=args.seconds, **options)
        results.append({**arrangement, **found})
        if args.out is not None:
            args.out.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
        group = f" ({arrangement['group']} a call)" if arrangement.get("group", 1) > 1 else ""
        out = f"{found['batches_per_second']:,.0f}{group}" if arrangement["learner"] else "-"
        rows = f"{found['rows_per_second']:,.0f}" if arrangement["collectors"] else "-"
        cpu = ", ".join(
            f"{found[f'shard_cpu_us_per_{what}']:.1f} us a {what}"
            for what in ("row", "batch")
            if f"shard_cpu_us_per_{what}" in found
        )
        print(
            f"| {arrangement['space']} | {arrangement['sampler']} | {arrangement.get('shards', 1)} "
            f"| {'yes' if arrangement.get('journal') else 'no'} | {arrangement['collectors']} | {rows} | {out} "
            f"| {cpu or '-'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
