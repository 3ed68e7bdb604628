"""What a step of training costs with a framework's own buffer and with backsweep's.

A step is: add one transition, sample 64, report their TD errors.

    python -m benchmarks.integrations    measure, print the table, rewrite it in docs/frameworks/README.md

Both are timed in turns, in blocks of calls, so that a busy machine slows them down alike. Frameworks that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import Prioritized, Uniform
from benchmarks.machine import facts, measured_on
from benchmarks.records import ROOT, TITLES, Block, Records, keep, kind_here
from benchmarks.timing import Effort, compare, timed_calls

NAME = "integrations"
ROWS, FILLED, BATCH = 50_000, 5_000, 64
SPACE = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
ACTIONS = gym.spaces.Discrete(4)
ERRORS = np.abs(np.random.default_rng(1).normal(size=BATCH)).astype(np.float32)
EFFORT = Effort(calls=20, seconds=4.0)

Step = Callable[[], object]


class Walk:
    """Steps that never repeat, in episodes of 100."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self._states = generator.normal(size=(FILLED, 8)).astype(np.float32)
        self._time = 0

    def step(self) -> tuple[Any, int, float, Any, bool]:
        """Return observation, action, reward, successor and whether the episode ends."""
        self._time += 1
        place = self._time % FILLED
        return self._states[place], place % 4, 1.0, self._states[(place + 1) % FILLED], self._time % 100 == 0


def filled(add: Callable[[], object], cycle: Step) -> Step:
    """Fill a buffer, warm it up and return what is timed."""
    for _ in range(FILLED):
        add()
    for _ in range(20):
        cycle()
    return cycle


def stable_baselines3(ours: bool) -> Step:
    """Uniform rows: its own buffer has no others."""
    from stable_baselines3.common.buffers import ReplayBuffer as Theirs

    from backsweep.integrations.stable_baselines3 import ReplayBuffer

    buffer: Any = ReplayBuffer(ROWS, SPACE, ACTIONS, "cpu", sampler=Uniform(), seed=0) if ours else None
    buffer = Theirs(ROWS, SPACE, ACTIONS, "cpu") if buffer is None else buffer
    walk = Walk()

    def add() -> None:
        now, action, reward, following, ended = walk.step()
        info = {"terminal_observation": following} if ended else {}
        buffer.add(now[None], following[None], np.array([[action]]), np.array([reward]), np.array([ended]), [info])

    def cycle() -> None:
        add()
        buffer.sample(BATCH)

    return filled(add, cycle)


def tianshou(ours: bool) -> Step:
    """Prioritized rows."""
    from tianshou.data import Batch, PrioritizedReplayBuffer

    from backsweep.integrations.tianshou import ReplayBuffer

    buffer: Any = ReplayBuffer(ROWS, sampler=Prioritized(), seed=0) if ours else None
    buffer = PrioritizedReplayBuffer(ROWS, alpha=0.6, beta=0.4) if buffer is None else buffer
    walk = Walk()

    def add() -> None:
        now, action, reward, following, ended = walk.step()
        buffer.add(
            Batch(obs=now, act=action, rew=reward, terminated=ended, truncated=False, obs_next=following, info={})
        )

    def cycle() -> None:
        add()
        _, index = buffer.sample(BATCH)
        buffer.update_weight(index, ERRORS)

    return filled(add, cycle)


def torchrl(ours: bool) -> Step:
    """Uniform rows: its own prioritized sampler does not load with every version of torch."""
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.data.replay_buffers.samplers import RandomSampler

    from backsweep.integrations.torchrl import BacksweepSampler

    sampler: Any = BacksweepSampler(ROWS, Uniform(), lanes=1, seed=0) if ours else RandomSampler()
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(ROWS), sampler=sampler, batch_size=BATCH)
    walk = Walk()

    def add() -> None:
        now, action, reward, following, ended = walk.step()
        flag = torch.tensor([ended])
        after = {"observation": torch.from_numpy(following), "reward": torch.tensor([reward]), "done": flag}
        data = {"observation": torch.from_numpy(now), "action": torch.tensor(action)}
        buffer.add(TensorDict({**data, "next": {**after, "terminated": flag}}, []))

    def cycle() -> None:
        add()
        buffer.sample()

    return filled(add, cycle)


def rllib(ours: bool) -> Step:
    """Prioritized rows; steps arrive as pieces of episodes."""
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
    from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import PrioritizedEpisodeReplayBuffer

    from backsweep.integrations.rllib import EpisodeReplay

    buffer: Any = EpisodeReplay(ROWS, sampler=Prioritized(), seed=0) if ours else None
    buffer = PrioritizedEpisodeReplayBuffer(ROWS, alpha=0.6) if buffer is None else buffer
    walk, episode, time = Walk(), 0, 0

    def add() -> None:
        nonlocal episode, time
        now, action, reward, following, ended = walk.step()
        buffer.add(
            SingleAgentEpisode(
                id_=str(episode),
                observations=[now, following],
                observation_space=SPACE,
                actions=[action],
                action_space=ACTIONS,
                rewards=[reward],
                terminated=ended,
                t_started=time,
                len_lookback_buffer=0,
            )
        )
        episode, time = episode + ended, 0 if ended else time + 1

    def cycle() -> None:
        add()
        buffer.sample(num_items=BATCH, n_step=1, beta=0.4)
        buffer.update_priorities(ERRORS)

    return filled(add, cycle)


FRAMEWORKS: dict[str, tuple[str, Callable[[bool], Step]]] = {
    "Stable-Baselines3": ("stable_baselines3", stable_baselines3),
    "Tianshou": ("tianshou", tianshou),
    "TorchRL": ("torchrl", torchrl),
    "RLlib": ("ray.rllib", rllib),
}


def table(records: Records) -> str:
    """Return the table as Markdown."""
    lines = ["| framework | rows | processor | its own buffer | backsweep's | ratio |", "| --- |" + " --- |" * 5]
    for name, (_, make) in FRAMEWORKS.items():
        rows = (make.__doc__ or "").split()[0].lower()
        for processor, record in records.items():
            found = record["results"].get(name)
            if found is not None:
                theirs, ours = found["floor_median_us"], found["median_us"]
                lines.append(f"| {name} | {rows} | {processor} | {theirs:,.0f} | {ours:,.0f} | {found['ratio']:.2f} |")
    return "\n\n".join(["\n".join(lines), *(measured_on(record["machine"]) for record in records.values())])


BLOCKS = (
    Block(
        NAME,
        ROOT / "docs" / "frameworks" / "README.md",
        "<!-- benchmarks.integrations begin -->",
        "<!-- benchmarks.integrations end -->",
        table,
    ),
)


def main() -> None:
    """Measure, print, and rewrite the page."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    machine = facts()
    results: dict[str, Any] = {}
    for name, (module, make) in FRAMEWORKS.items():
        try:
            importlib.import_module(module)
        except ImportError:
            print(f"{name} is not installed, so it is left out", file=sys.stderr)
            continue
        ours, theirs = make(True), make(False)
        results[name] = compare(partial(timed_calls, ours), partial(timed_calls, theirs), EFFORT)
    record = {"machine": machine, "results": results}
    print(table({TITLES[kind_here()]: record}))
    keep(NAME, record)
    BLOCKS[0].write()


if __name__ == "__main__":
    main()
