"""An episode of a trained agent as an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from backsweep.agent.config import RunConfig
from backsweep.agent.fleet.fleet import config_network
from backsweep.agent.fleet.run import run_environments
from backsweep.agent.learner.networks import network_tensor
from backsweep.agent.session.checkpoint import load_agent
from backsweep.agent.session.evaluation.rollouts import ActionValues
from backsweep.agent.session.folder import RunError, check_import, read_config
from backsweep.jit.random_streams import named_generator
from backsweep.tasks.environments import Environments

LONGEST_FILM = 2_000  # steps; episodes of environments without a time limit may never end
SMALLEST_SIDE = 240  # pixels; smaller images are enlarged by an integer factor


class Agent:
    """A trained network with its run's configuration."""

    def __init__(self, folder: Path, *, allow_import: bool = False) -> None:
        self.config: RunConfig = read_config(folder)
        check_import(self.config, allow_import)
        flat, self.step, self._scale = load_agent(folder)
        envs = run_environments(self.config, "agent", 1)
        self.network = config_network(self.config, envs.observation_space, envs.num_actions)
        envs.close()
        self._flat = torch.from_numpy(np.ascontiguousarray(flat))[None]
        if self._flat.shape[1] != self.network.layout.size:
            raise RunError(f"{folder}/agent has {flat.size} parameters, and its network {self.network.layout.size}")
        self._views = self.network.layout.views(self._flat)

    @torch.no_grad()
    def values(self, observations: NDArray[Any]) -> NDArray[np.floating]:
        """Return the values (rows, actions) of observations (rows, ...)."""
        prepared = self.network.prepare(network_tensor(self.network, observations)[None], self._flat.dtype)
        values: NDArray[np.floating] = self.network.forward(self._views, prepared)[0].numpy()
        return values / values.dtype.type(self._scale)


def film(
    folder: Path,
    out: Path,
    *,
    episode: int = 0,
    random_chance: float = 0.0,
    fps: int = 8,
    allow_import: bool = False,
) -> tuple[float, int]:
    """Write a GIF of one episode of the run's agent; return the episode's return and length."""
    if episode < 0:
        raise RunError(f"episode must be 0 or more, got {episode}")
    if not 0.0 <= random_chance <= 1.0:
        raise RunError(f"random_chance must be in 0..1, got {random_chance}")
    if not 1 <= fps <= 100:
        raise RunError(f"fps must be from 1 to 100, got {fps}")
    agent = Agent(folder, allow_import=allow_import)
    envs = run_environments(agent.config, f"watch {episode}", 1, render=True, longest=LONGEST_FILM)
    try:
        frames, total = play_frames(envs, agent.values, random_chance, episode)
    finally:
        envs.close()
    images = [_enlarged(frame) for frame in frames]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        hold = 1000 // fps
        times = [hold] * (len(images) - 1) + [4 * hold]
        images[0].save(out, save_all=True, append_images=images[1:], duration=times, loop=0)
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror or error}") from error
    return total, len(frames) - 1


def play_frames(
    envs: Environments, values: ActionValues, random_chance: float, episode: int
) -> tuple[list[NDArray[np.uint8]], float]:
    """Play one episode; return an image before every step, one after the last, and the return."""
    generator = named_generator(episode, "watch")
    observations, total = envs.reset(), 0.0
    frames = [envs.picture()]
    while True:
        action = values(observations).argmax(axis=1)
        if generator.random() < random_chance:
            action = generator.integers(envs.num_actions, size=1)
        outcome = envs.step(action)
        total += float(outcome.rewards[0])
        ended = bool(outcome.terminated[0] or outcome.truncated[0])
        # After the end the environment already shows the next episode, so the last picture is repeated.
        frames.append(frames[-1] if ended else envs.picture())
        if ended:
            return frames, total
        observations = outcome.observations


def _enlarged(frame: NDArray[np.uint8]) -> Image.Image:
    factor = max(1, -(-SMALLEST_SIDE // max(frame.shape[:2])))
    return Image.fromarray(frame.repeat(factor, axis=0).repeat(factor, axis=1))
