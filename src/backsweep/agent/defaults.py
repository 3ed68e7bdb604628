"""The complete configuration of a run, from a task, a method and a choice of settings."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from backsweep.agent.config import RunConfig
from backsweep.agent.methods import checked_method, method_for
from backsweep.agent.settings import CHOICES, settings_fields
from backsweep.checks import is_int
from backsweep.tasks import find_task
from backsweep.tasks.gymnasium_env import is_gymnasium_id
from backsweep.tasks.registry import Task
from backsweep.tasks.settings import NetworkSettings, TrainingSettings

# For any Gymnasium environment: settings that solve the small control tasks.
OTHER_SETTINGS = TrainingSettings(
    network=NetworkSettings(linear=(256, 256)),
    budget=100_000,
    learning_rate=1e-3,
    target_interval=500,
    warmup_steps=1_000,
    capacity=100_000,
    epsilon_steps=10_000,
    evaluation_interval=10_000,
    evaluation_episodes=20,
)
OUR_BUDGET = 1_000_000
"""Steps of a MiniGrid or Sokoban run with our settings; most of the paper's budgets are three to ten times as long."""


def run_config(
    task: str | None = None,
    *,
    env: str | None = None,
    method: str = "graph",
    settings: str = "ours",
    **overrides: Any,
) -> RunConfig:
    """Return the configuration of a run: the task's settings, the method's, and `overrides` on top.

    A Gymnasium id may stand in the place of the task.

    Examples
    --------
    >>> config = run_config("minigrid/doorkey", steps=500_000)
    >>> config.method, config.reward_scale, config.epsilon_steps
    ('graph', 'auto', 400000)
    >>> run_config("sokoban/6x6-2", method="uer", settings="released").capacity
    50000
    """
    _check_names(task=task, env=env, method=method)
    checked_method(method)
    if settings not in CHOICES:
        raise ValueError(f"settings must be one of {', '.join(CHOICES)}, got {settings!r}")
    known = [entry.name for entry in dataclasses.fields(RunConfig)]
    for name in overrides:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"run_config has no option {name!r}{hint}")
    if env is None and task is not None and is_gymnasium_id(task):
        task, env = None, task
    options = overrides.get("task_options", {})
    if not isinstance(options, Mapping):
        raise TypeError(f"task_options must be a dict of the task's options, got {options!r}")
    found = find_task(task) if task is not None else None
    fields: dict[str, Any] = {"task": None if found is None else found.id, "env": env}
    fields.update(_settings_fields(OTHER_SETTINGS if found is None else found.training))
    fields.update(_family_fields(found, options))
    family = None if found is None else found.family
    if settings == "ours" and family in ("minigrid", "sokoban"):
        fields["steps"] = OUR_BUDGET
    steps = overrides.get("steps", fields["steps"])
    if not is_int(steps):
        raise ValueError(f"steps must be an int, got {steps!r}")
    fields.update(settings_fields(settings, family, method, steps))
    if settings == "ours" and env is not None:
        fields["explore_until_reward"] = True  # nothing is known about how rare its rewards are
    config = RunConfig(method=method, settings=settings, **{**fields, **overrides})  # type: ignore[arg-type]
    method_for(config)  # refuses options that do not fit the method
    return config


def _check_names(**names: Any) -> None:
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be a name, got a {type(value).__name__}")


def check_configs(configs: Any) -> None:
    """Refuse what is not a dict of configurations by name."""
    if not isinstance(configs, Mapping):
        raise TypeError(f"configs must be a dict from names to configurations, got a {type(configs).__name__}")
    for name, config in configs.items():
        check_config(config, f"configs[{name!r}]")
        if not isinstance(name, str) or not name:
            raise TypeError(f"the names of configs must be text, got {name!r}")


def check_config(config: Any, name: str = "config") -> None:
    """Refuse what is not the configuration of a run."""
    if not isinstance(config, RunConfig):
        raise TypeError(f"{name} must be what run_config returns, got a {type(config).__name__}")


def task_of(config: RunConfig) -> Task | None:
    """Return the task of the table that a run is on, None for other environments."""
    return None if config.task is None else find_task(config.task)


def task_options(config: RunConfig) -> dict[str, Any]:
    """Return the environment's options: those of the chosen settings, overridden by the user's."""
    following = {} if config.task is None else find_task(config.task).options_under(config.settings)
    return {**following, **config.task_options}


def _settings_fields(settings: TrainingSettings) -> dict[str, Any]:
    """Return a task's settings as fields of a configuration; most have the same name there."""
    fields = dataclasses.asdict(settings)
    network, budget, update_interval = fields.pop("network"), fields.pop("budget"), fields.pop("update_interval")
    return {
        **{name: value for name, value in fields.items() if value is not None},
        **network,
        "steps": budget,
        "ratio": 1.0 / update_interval,
        "record_interval": max(1, settings.evaluation_interval // 10),
    }


def _family_fields(task: Task | None, options: Mapping[str, Any]) -> dict[str, Any]:
    if task is None:
        return {}
    # The package's reward depends on the step count, so states do not have one value.
    fields: dict[str, Any] = {"exact": task.is_exact and options.get("reward", "paper") == "paper"}
    if task.family == "sokoban":
        fields["eta"] = 0.2  # the main text; the appendix says 0.1
    if task.family == "atari":
        fields["frame_stack"] = 4
    return fields
