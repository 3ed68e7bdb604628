"""One update on a CPU by every path, against Stable-Baselines3's, all in one process and in turns.

    python -m benchmarks.updates              measure, print the table, rewrite it in docs/performance-training.md
    python -m benchmarks.updates --quick      a short measurement, and nothing is rewritten

An update is a batch of 64 of images of 40x40x3 through the Nature CNN: draw it, three forward passes (double DQN;
Stable-Baselines3 takes two), one backward pass, Adam. The paths are those of `backsweep.agent.learner.convolutions`,
and torch.compile or bfloat16 products over a whole loss with torch's fused Adam, drawing left out. Two kinds of data:
DoorKey played at random, where states come back, and random images, where none does. The ratio is the median over
rounds of Stable-Baselines3's time over ours within the round; time is that of the one thread, so that what else the
machine does counts as little as possible.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.machine import facts, measured_on
from benchmarks.records import TITLES, Block, Records, keep, kind_here

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance-training.md"
NAME, THEIRS = "updates", "Stable-Baselines3"
BATCH, ROWS = 64, 5_000
NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
DATA = {"DoorKey played at random": "backsweep/DoorKey-v0", "images that never repeat": "RandomImages-v0"}
AGED = 400
"""Updates before the measurement: what slows down as a network learns is to be seen."""


class RandomImages(gym.Env[Any, Any]):
    """Random images and rewards, episodes of 50 steps."""

    observation_space = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8)
    action_space = gym.spaces.Discrete(7)

    def __init__(self) -> None:
        self._left = 0

    def _look(self) -> Any:
        return self.np_random.integers(0, 256, (40, 40, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 50
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._left -= 1
        return self._look(), float(self.np_random.normal()), self._left == 0, False, {}


def make(name: str) -> Any:
    """Return an environment by its id."""
    import backsweep.tasks  # noqa: F401 - registers its ids

    if "RandomImages-v0" not in gym.registry:
        gym.register("RandomImages-v0", lambda **_: RandomImages())
    return gym.make(name)


def our_updates(name: str) -> dict[str, Callable[[], None]]:
    """Return an update by each of our paths, from one replay."""
    from backsweep import Replay, Uniform
    from backsweep.agent.learner.convolutions import PATHS
    from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
    from backsweep.agent.learner.networks import network_for
    from backsweep.agent.learner.rules import TargetRule

    env = make(name)
    replay = Replay(env.observation_space, env.action_space, ROWS, Uniform())
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(ROWS):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        replay.add(observation, action, reward, following, terminated, truncated)
        observation = env.reset()[0] if terminated or truncated else following
    network = network_for(env.observation_space, int(env.action_space.n), NATURE, (512,))
    learners = {path: Learner(network, TargetRule(), LearnerSettings(convolutions=path), (0,)) for path in PATHS}
    updates: dict[str, Callable[[], None]] = {
        path: lambda learner=learner: learner.update([replay.sample(BATCH)])  # type: ignore[misc]
        for path, learner in learners.items()
    }
    return updates


def torch_update(name: str, *, rounded: bool) -> Callable[[], None]:
    """Return an update written with torch.nn, from a buffer in tensors: compiled, or with bfloat16 products."""
    import torch

    env = make(name)
    generator = torch.Generator().manual_seed(0)
    images = torch.stack([torch.from_numpy(env.reset(seed=seed)[0].copy()) for seed in range(500)]).permute(0, 3, 1, 2)
    images = images.contiguous(memory_format=torch.channels_last)
    actions = int(env.action_space.n)

    def made() -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        channels = 3
        for outputs, kernel, stride in NATURE:
            layers += [torch.nn.Conv2d(channels, outputs, kernel, stride), torch.nn.ReLU()]
            channels = outputs
        layers += [torch.nn.Flatten(), torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, actions)]
        network = torch.nn.Sequential(*layers)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network

    online, target = made(), made()
    adam = torch.optim.Adam(online.parameters(), lr=3e-4, fused=True)

    def loss(seen: torch.Tensor, following: torch.Tensor, action: torch.Tensor, reward: torch.Tensor) -> torch.Tensor:
        both = online(torch.cat([seen, following]).float() / 255)
        with torch.no_grad():
            best = both[BATCH:].argmax(dim=1, keepdim=True)
            goal = reward + 0.99 * target(following.float() / 255).gather(1, best).squeeze(1)
        return torch.nn.functional.smooth_l1_loss(both[:BATCH].gather(1, action).squeeze(1), goal)

    measured = torch.autocast("cpu", torch.bfloat16)(loss) if rounded else torch.compile(loss)

    def update() -> None:
        rows = torch.randint(len(images), (2, BATCH), generator=generator)
        action = torch.randint(actions, (BATCH, 1), generator=generator)
        adam.zero_grad()
        measured(images[rows[0]], images[rows[1]], action, torch.zeros(BATCH)).backward()
        adam.step()

    return update


def sb3_update(name: str) -> Callable[[], None]:
    """Return an update of Stable-Baselines3's DQN, with its own buffer."""
    from stable_baselines3 import DQN

    model = DQN(
        "CnnPolicy", make(name), buffer_size=ROWS, learning_starts=ROWS, batch_size=BATCH, device="cpu", seed=0,
        learning_rate=3e-4,
    )  # fmt: skip
    model.learn(ROWS)
    model.policy.set_training_mode(True)
    return lambda: model.train(1, BATCH)


def measure(name: str, rounds: int, aged: int) -> dict[str, dict[str, float]]:
    """Return for each path its milliseconds, and how many times as fast as Stable-Baselines3's it is."""
    updates = {
        THEIRS: sb3_update(name),
        **our_updates(name),
        "torch.compile": torch_update(name, rounded=False),
        "torch, bfloat16": torch_update(name, rounded=True),
    }
    for update in updates.values():
        for _ in range(aged):
            update()
    times: dict[str, list[float]] = {path: [] for path in updates}
    for _ in range(rounds):
        for path, update in updates.items():
            start = time.thread_time()
            update()
            times[path].append(time.thread_time() - start)
    theirs = times[THEIRS]
    return {
        path: {
            "ms": 1e3 * statistics.median(mine),
            "ratio": statistics.median(base / own for base, own in zip(theirs, mine, strict=True)),
        }
        for path, mine in times.items()
    }


def table(records: Records) -> str:
    """Return the table as Markdown, with a column for each kind of data and of processor."""
    columns = [(title, processor) for title in DATA for processor in records]
    lines = ["| update by | " + " | ".join(f"{title}, {processor}" for title, processor in columns) + " |"]
    lines.append("| --- |" + " --- |" * len(columns))
    paths = dict.fromkeys(path for title, processor in columns for path in records[processor]["updates"][title])
    for path in paths:
        found = (records[processor]["updates"][title].get(path) for title, processor in columns)
        shown = " | ".join("-" if one is None else f"{one['ms']:.1f} ms, {one['ratio']:.2f} x" for one in found)
        lines.append(f"| {path} | {shown} |")
    return "\n\n".join(["\n".join(lines), *(measured_on(record["machine"]) for record in records.values())])


BLOCKS = (Block(NAME, PAGE, "<!-- benchmarks.updates begin -->", "<!-- benchmarks.updates end -->", table),)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=150)
    options = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    rounds, aged = (5, 10) if options.quick else (options.rounds, AGED)
    machine = facts()
    record = {"machine": machine, "updates": {title: measure(name, rounds, aged) for title, name in DATA.items()}}
    print(table({TITLES[kind_here()]: record}))
    if not options.quick:
        keep(NAME, record)
        BLOCKS[0].write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
