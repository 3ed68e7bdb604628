"""The loop of a run: steps in the environments, updates, evaluations, and records as it goes."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import sheeprl
import torch

from backsweep import tasks
from backsweep.jit.random_streams import named_generator
from benchmarks.world_model.agent import Dreamer
from benchmarks.world_model.episodes import evaluate
from benchmarks.world_model.recorded import RecordedUpdate
from benchmarks.world_model.sequences import Batch, Sequences
from benchmarks.world_model.settings import Settings

UPDATES = ("recorded", "compiled", "eager")
"""Ways to make an update: a CUDA graph of everything, sheeprl's own use of torch.compile (minutes), or call by call."""
REPORT_SECONDS = 30.0


class Run:
    """One run, from its first step to its last, or to a deadline."""

    def __init__(self, settings: Settings, out: Path, device: str, how: str, deadline: float) -> None:
        """Make the models and environments; `deadline` is a time of the monotonic clock."""
        self.settings, self.deadline, self.how = settings, deadline, how
        self.began = time.monotonic()
        self.evaluating = 0.0
        self.env = tasks.make(settings.task, num_envs=settings.num_envs, seed=self._seed("training"))
        space = self.env.single_action_space
        self.dreamer = Dreamer(settings, int(space.n), device, compiled=how == "compiled")  # type: ignore[attr-defined]
        self.update: Callable[[Batch], None] = self.dreamer.update
        if how == "recorded":
            self.update = RecordedUpdate(self.dreamer.update)
        bounds = tasks.find_task(settings.task).return_bounds
        assert bounds is not None
        self.scale = 1.0 / max(map(abs, bounds))
        # A row for each step, and one for each beginning of an episode: at most as many again.
        rows = 2 * settings.steps // settings.num_envs + 2
        image = self.env.single_observation_space.shape
        assert image is not None
        self.stored = Sequences(rows, settings.num_envs, image, self.dreamer.num_actions, self.dreamer.device)
        self.batches = named_generator(settings.seed, "batches")
        self.out = out
        self.last_report = self.began

    def _seed(self, purpose: str) -> int:
        return int(named_generator(self.settings.seed, "environments", purpose).integers(2**31))

    def write(self, kind: str, **fields: Any) -> None:
        """Append a record to the run's file; nothing stays in a buffer."""
        known = {"kind": kind, "method": "dreamer-v2", "task": self.settings.task, "seed": self.settings.seed}
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**known, **fields}) + "\n")

    def clocks(self) -> dict[str, Any]:
        """Return the updates so far, the seconds so far, and those of them that evaluations took."""
        return {
            "updates": self.dreamer.updates,
            "seconds": round(time.monotonic() - self.began, 2),
            "evaluation_seconds": round(self.evaluating, 2),
        }

    def go(self) -> int:
        """Train until the last step or the deadline; return the steps made."""
        settings, env, num_envs = self.settings, self.env, self.settings.num_envs
        self._describe()
        random = named_generator(settings.seed, "random actions")
        player = self.dreamer.new_player(num_envs)
        everyone = np.arange(num_envs)
        images, _ = env.reset()
        self.stored.add(everyone, images)
        step, owed = 0, 0.0
        while step < settings.steps and time.monotonic() < self.deadline:
            if step < settings.prefill:
                actions = random.integers(self.dreamer.num_actions, size=num_envs)
            else:
                actions = player.act(images, greedy=False)
            after, rewards, terminated, truncated, infos = env.step(actions)
            ended = np.flatnonzero(terminated | truncated)
            reached = after.copy()
            for lane in ended:
                reached[lane] = infos["final_obs"][lane]
            self.stored.add(everyone, reached, actions, rewards * self.scale, terminated)
            if len(ended):
                self.stored.add(ended, after[ended])
                player.begin(ended.tolist())
            images, step = after, step + num_envs
            if step >= settings.prefill:
                owed += settings.pretrain if step == settings.prefill else settings.ratio * num_envs
                while owed >= 1.0 and time.monotonic() < self.deadline:
                    self._learn()
                    owed -= 1.0
            if step % settings.interval == 0:
                self._evaluate(step)
            self._report(step)
        self.write("world-model end", step=step, **self.clocks())
        self._report(step, force=True)
        return step

    def batch(self) -> Batch:
        """Return a batch, prepared for an update."""
        drawn = self.stored.sample(self.settings.batch, self.settings.length, self.batches)
        return self.dreamer.prepared(drawn)

    def _learn(self) -> None:
        self.dreamer.copy_target()
        self.update(self.batch())

    def _describe(self) -> None:
        cuda = self.dreamer.device.type == "cuda"
        self.write(
            "world-model run",
            settings=asdict(self.settings),
            reward_scale=self.scale,
            parameters=self.dreamer.parameters,
            update=self.how,
            device=torch.cuda.get_device_name() if cuda else "cpu",
            versions={"sheeprl": sheeprl.__version__, "torch": torch.__version__, "python": platform.python_version()},
        )

    def _evaluate(self, step: int) -> None:
        start = time.monotonic()
        found = evaluate(self.dreamer, self.settings, step)
        if self.dreamer.updates:
            found |= {name: round(value, 5) for name, value in self.dreamer.losses(self.batch()).items()}
        self.evaluating += time.monotonic() - start
        self.write("world-model", step=step, **found, **self.clocks())
        self._report(step, f"solved {found['success']:.2f}, return {found['normalised_return']:.3f}", force=True)

    def _report(self, step: int, text: str = "", *, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.last_report >= REPORT_SECONDS:
            self.last_report = now
            name = f"{self.settings.task} seed {self.settings.seed}"
            done = f"{step:,} steps, {self.dreamer.updates:,} updates, {now - self.began:.0f} s"
            print(f"{name}: {done}{', ' + text if text else ''}", flush=True)
