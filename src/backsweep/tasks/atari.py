"""Atari games: ale-py's environments under Gymnasium's own preprocessing."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium

from backsweep.tasks.options import GameOptions, checked_flag, checked_int

FRAMES_PER_STEP = 4
FRAMES_STACKED = 4
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
    if importlib.util.find_spec("ale_py") is None or importlib.util.find_spec("cv2") is None:
        raise ImportError("Atari tasks need ale-py and OpenCV: pip install 'backsweep[atari]'")
    import ale_py

    gymnasium.register_envs(ale_py)
    env: gymnasium.Env[Any, Any] = gymnasium.make(
        f"ALE/{options.game.capitalize()}-v5",
        render_mode=render_mode,
        disable_env_checker=True,
        # The preprocessing reads the screen itself; grey is what takes the emulator's environment least time.
        obs_type="grayscale",
        frameskip=1,
        repeat_action_probability=options.sticky_action_chance,
        # The emulator's own limit must not apply before the step limit below.
        max_num_frames_per_episode=FRAMES_PER_STEP * (options.step_limit + options.noop_max + 1),
    )
    env = gymnasium.wrappers.AtariPreprocessing(
        env, noop_max=options.noop_max, frame_skip=FRAMES_PER_STEP, terminal_on_life_loss=options.terminal_on_life_loss
    )
    env = gymnasium.wrappers.TimeLimit(env, options.step_limit)
    return gymnasium.wrappers.FrameStackObservation(env, FRAMES_STACKED)
