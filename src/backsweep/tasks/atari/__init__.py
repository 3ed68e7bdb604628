"""Atari games of ale-py, seen as Gymnasium's own preprocessing shows them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium

from backsweep.tasks.atari.game import AtariGame
from backsweep.tasks.options import GameOptions, checked_flag, checked_int

ACTIONS = ("noop", "fire", "up", "right", "left", "down")
ALL_ACTIONS = (
    *ACTIONS,
    "upright",
    "upleft",
    "downright",
    "downleft",
    "upfire",
    "rightfire",
    "leftfire",
    "downfire",
    "uprightfire",
    "upleftfire",
    "downrightfire",
    "downleftfire",
)
ACTION_NAMES = {
    "pong": ("noop", "fire", "right", "left", "rightfire", "leftfire"),
    "freeway": ("noop", "up", "down"),
    "kangaroo": ALL_ACTIONS,
    "venture": ALL_ACTIONS,
}


@dataclass(frozen=True, kw_only=True)
class AtariOptions(GameOptions):
    """Settings of one Atari game, checked when made."""

    ACTION_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = ACTION_NAMES
    max_steps: int | None = 27_000
    """Step limit, in agent steps of four frames (30 minutes of play by default)."""
    noop_max: int = 30
    """An episode starts with up to this many steps of doing nothing."""
    sticky_action_chance: float = 0.0
    """Probability that a frame repeats the previous action, inside the emulator."""
    terminal_on_life_loss: bool = False
    """Whether losing a life ends the episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_int("noop_max", self.noop_max, 0)
        checked_flag("terminal_on_life_loss", self.terminal_on_life_loss)

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """Pong is played to 21 points; the other games' rules set no highest score."""
        return (-21.0, 21.0) if self.game == "pong" else None


def make_atari(options: AtariOptions, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Return one game as a plain environment."""
    if importlib.util.find_spec("ale_py") is None:
        raise ImportError("Atari tasks need ale-py: pip install 'backsweep[atari]'")
    game = AtariGame(
        options.game,
        step_limit=options.step_limit,
        noop_max=options.noop_max,
        sticky_action_chance=options.sticky_action_chance,
        terminal_on_life_loss=options.terminal_on_life_loss,
        render_mode=render_mode,
    )
    return gymnasium.wrappers.TimeLimit(gymnasium.wrappers.OrderEnforcing(game), options.step_limit)
