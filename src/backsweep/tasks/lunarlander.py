"""LunarLander: Gymnasium's own environment."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any

import gymnasium

from backsweep.tasks.options import TaskOptions


@dataclass(frozen=True, kw_only=True)
class LunarLanderOptions(TaskOptions):
    """Settings of LunarLander, checked when made."""

    max_steps: int | None = 1_000

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("nothing", "left engine", "main engine", "right engine")

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """The shaping reward has no bounds that can be derived."""
        return None


def make_lunarlander(options: LunarLanderOptions, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Return LunarLander as a plain environment."""
    if importlib.util.find_spec("Box2D") is None:
        raise ImportError("LunarLander needs Box2D: pip install 'backsweep[lunarlander]'")
    with warnings.catch_warnings():
        # Box2D's binding warns while it loads, and crashes the interpreter where warnings are errors.
        warnings.simplefilter("ignore", DeprecationWarning)
        importlib.import_module("Box2D")
    return gymnasium.make("LunarLander-v3", render_mode=render_mode, max_episode_steps=options.step_limit)
