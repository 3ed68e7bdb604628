"""Makes environments from task ids."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from backsweep.tasks.atari import AtariOptions, make_atari
from backsweep.tasks.chain import ChainLanes, ChainOptions
from backsweep.tasks.foreign import ForeignVectorEnv, RandomActions
from backsweep.tasks.lanes import Lanes
from backsweep.tasks.lunarlander import LunarLanderOptions, make_lunarlander
from backsweep.tasks.minatar import MinAtarOptions, make_minatar
from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions
from backsweep.tasks.options import checked_flag, checked_int
from backsweep.tasks.registry import Task, find_task
from backsweep.tasks.single import LaneEnv
from backsweep.tasks.sokoban import SokobanLanes, SokobanOptions
from backsweep.tasks.vector import LaneVectorEnv

FOREIGN_OPTIONS = (AtariOptions, LunarLanderOptions, MinAtarOptions)


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
    lanes = checked_int("num_envs", num_envs, 1)
    checked_flag("copy", copy)
    chosen = found.options(**options)
    if isinstance(chosen, FOREIGN_OPTIONS):
        makers = [lambda: _make_foreign(chosen)] * lanes
        return ForeignVectorEnv(makers, seed=seed, autoreset=autoreset, copy=copy)
    return LaneVectorEnv(make_lanes(chosen, lanes), seed=seed, autoreset=autoreset, copy=copy)


def make_single(task: str, render_mode: str | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return one lane of a task as a plain Env; `gymnasium.make` calls this."""
    chosen = find_task(task).options(**options)
    if isinstance(chosen, FOREIGN_OPTIONS):
        return _make_foreign(chosen, render_mode)
    return LaneEnv(make_lanes(chosen, 1), render_mode=render_mode)


def make_vector(
    task: str, num_envs: int = 1, render_mode: str | None = None, **options: Any
) -> VectorEnv[Any, Any, Any]:
    """Return lanes of a task; `gymnasium.make_vec` calls this."""
    del render_mode  # a vector can always be rendered
    return make(task, num_envs, **options)


def make_lanes(options: Any, num_lanes: int) -> Lanes:
    """Return lanes with these options."""
    if isinstance(options, ChainOptions):
        return ChainLanes(options, num_lanes)
    if isinstance(options, MiniGridOptions):
        return MiniGridLanes(options, num_lanes)
    assert isinstance(options, SokobanOptions)
    return SokobanLanes(options, num_lanes)


def _make_foreign(
    options: AtariOptions | LunarLanderOptions | MinAtarOptions, render_mode: str | None = None
) -> gymnasium.Env[Any, Any]:
    if isinstance(options, AtariOptions):
        env = make_atari(options, render_mode)
    elif isinstance(options, MinAtarOptions):
        env = make_minatar(options, render_mode)
    else:
        env = make_lunarlander(options, render_mode)
    return RandomActions(env, options.random_action_chance) if options.random_action_chance > 0.0 else env
