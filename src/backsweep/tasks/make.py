"""Makes environments from task ids."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from backsweep.tasks.foreign import ForeignVectorEnv, RandomActions
from backsweep.tasks.lane_envs import LaneEnv, LaneVectorEnv
from backsweep.tasks.lanes import Lanes
from backsweep.tasks.options import checked_flag, checked_int
from backsweep.tasks.registry import OWN_FAMILIES, TASKS, Task, find_task


def make(
    task: str | Task,
    num_envs: int = 1,
    seed: int = 0,
    *,
    autoreset: str | AutoresetMode = "same_step",
    copy: bool = True,
    **options: Any,
) -> VectorEnv[Any, Any, Any]:
    """Return `num_envs` lanes of a task as a Gymnasium VectorEnv.

    Parameters
    ----------
    task
        A task id, such as "minigrid/doorkey"; `backsweep tasks` lists them.
    num_envs
        Number of lanes.
    seed
        Root seed of the first reset. Each lane gets its own stream from it; `env.lane_seeds` holds the lanes' seeds,
        and `env.reset(seed=[lane_seed])` or a single environment's `reset(seed=lane_seed)` replays one lane alone.
    autoreset
        "same_step" or "next_step". Either way the last observation of an episode is delivered: in
        `infos["final_obs"]`, or as the observation itself.
    copy
        Whether every call returns fresh observation arrays.
    options
        The task's own options, such as `random_action_chance=0.1`.

    Examples
    --------
    >>> env = make("minigrid/doorkey", num_envs=2, seed=3)
    >>> observations, infos = env.reset()
    >>> observations.shape
    (2, 40, 40, 3)
    """
    found = find_task(task)
    count = checked_int("num_envs", num_envs, 1)
    checked_flag("copy", copy)
    if found.is_own:
        return LaneVectorEnv(make_lanes(found, count, options), seed=seed, autoreset=autoreset, copy=copy)
    makers = [lambda: make_single(found, **options)] * count
    return ForeignVectorEnv(makers, seed=seed, autoreset=autoreset, copy=copy)


def make_single(task: str | Task, render_mode: str | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return one lane of a task as a plain Env; `gymnasium.make` calls this."""
    found = find_task(task)
    if found.kind.env is None:
        return LaneEnv(make_lanes(found, 1, options), render_mode=render_mode)
    chosen = found.options(**options)
    env = found.kind.env(chosen, render_mode)
    return RandomActions(env, chosen.random_action_chance) if chosen.random_action_chance > 0.0 else env


def make_vector(
    task: str, num_envs: int = 1, render_mode: str | None = None, **options: Any
) -> VectorEnv[Any, Any, Any]:
    """Return lanes of a task; `gymnasium.make_vec` calls this."""
    del render_mode  # a vector can always be rendered
    return make(task, num_envs, **options)


def make_lanes(task: Task, num_lanes: int, options: dict[str, Any]) -> Lanes:
    """Return lanes of one of the project's own tasks."""
    if task.kind.lanes is None:
        raise ValueError(f"task must be of {', '.join(OWN_FAMILIES)}, got {task.id!r} of {task.family}")
    return task.kind.lanes(task.options(**options), num_lanes)


def register_tasks() -> None:
    """Register every task that is not registered yet; tasks apply their own step limit."""
    for task in TASKS.values():
        if task.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                id=task.gymnasium_id,
                entry_point="backsweep.tasks.make:make_single",
                vector_entry_point="backsweep.tasks.make:make_vector",
                kwargs={"task": task.id},
            )
