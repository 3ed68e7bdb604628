"""Evaluates a policy with a memory: episodes of the most likely actions, with a few random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from backsweep import tasks
from backsweep.jit.random_streams import named_generator
from benchmarks.world_model.agent import Dreamer
from benchmarks.world_model.settings import Settings


def evaluate(dreamer: Dreamer, settings: Settings, step: int) -> dict[str, Any]:
    """Play one episode in each of several environments to its end, and return what they gave.

    As in the project's own runs, levels and random actions depend on the seed and the step alone. An episode is solved
    if its last reward is positive: only the goal pays.
    """
    seed = int(named_generator(settings.seed, "environments", f"evaluation {step}").integers(2**31))
    generator = named_generator(settings.seed, "evaluation", str(step))
    env = tasks.make(settings.task, num_envs=settings.episodes, seed=seed)
    player = dreamer.new_player(settings.episodes)
    images, _ = env.reset()
    returns, lengths = np.zeros(settings.episodes), np.zeros(settings.episodes, np.int64)
    playing, solved = np.ones(settings.episodes, np.bool_), np.zeros(settings.episodes, np.bool_)
    while playing.any():
        best = player.act(images, greedy=True)
        chance, which = generator.random((2, settings.episodes))
        actions = np.where(chance >= settings.random_chance, best, (which * dreamer.num_actions).astype(np.int64))
        player.took(actions)
        images, rewards, terminated, truncated, _ = env.step(actions)
        returns[playing] += rewards[playing]
        lengths[playing] += 1
        ended = playing & (terminated | truncated)
        solved[ended] = terminated[ended] & (rewards[ended] > 0)
        playing &= ~ended
    mean = float(returns.mean())
    bounds = tasks.find_task(settings.task).return_bounds
    assert bounds is not None
    return {
        "episodes": settings.episodes,
        "success": float(solved.mean()),
        "mean_return": mean,
        "normalised_return": float(tasks.normalised_return(mean, bounds)),
        "mean_length": float(lengths.mean()),
    }
