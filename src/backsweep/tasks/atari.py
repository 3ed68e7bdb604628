"""Atari games: ale-py's environments under Gymnasium's own preprocessing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import gymnasium

from backsweep.tasks.options import checked_chance, checked_choice, checked_flag, checked_int

FRAMES_PER_STEP = 4
FRAMES_STACKED = 4
GAMES = ("pong", "freeway", "kangaroo", "venture")
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
class AtariOptions:
    """Settings of one Atari game, checked when made."""

    game: str
    """One of GAMES. Set by the task id."""
    max_steps: int = 27_000
    """Step limit, in agent steps of four frames (30 minutes of play by default)."""
    noop_max: int = 30
    """An episode starts with up to this many steps of doing nothing."""
    sticky_action_chance: float = 0.0
    """Probability that a frame repeats the previous action, inside the emulator."""
    terminal_on_life_loss: bool = False
    """Whether losing a life ends the episode."""
    random_action_chance: float = 0.0
    """Probability that a step's action is replaced by a uniformly random one."""

    def __post_init__(self) -> None:
        """Check the options."""
        checked_choice("game", self.game, GAMES)
        checked_int("max_steps", self.max_steps, 1)
        checked_int("noop_max", self.noop_max, 0)
        checked_chance("sticky_action_chance", self.sticky_action_chance)
        checked_flag("terminal_on_life_loss", self.terminal_on_life_loss)
        checked_chance("random_action_chance", self.random_action_chance)

    @property
    def step_limit(self) -> int:
        """The step limit."""
        return self.max_steps

    @property
    def action_names(self) -> tuple[str, ...]:
        """The game's minimal action set."""
        return ACTION_NAMES[self.game]

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
        frameskip=1,
        repeat_action_probability=options.sticky_action_chance,
        # The emulator's own limit must not apply before the step limit below.
        max_num_frames_per_episode=FRAMES_PER_STEP * (options.max_steps + options.noop_max + 1),
    )
    env = gymnasium.wrappers.AtariPreprocessing(
        env,
        noop_max=options.noop_max,
        frame_skip=FRAMES_PER_STEP,
        terminal_on_life_loss=options.terminal_on_life_loss,
    )
    env = gymnasium.wrappers.TimeLimit(env, options.max_steps)
    return gymnasium.wrappers.FrameStackObservation(env, FRAMES_STACKED)
