"""MinAtar: five small arcade games on a grid of 10x10, from the package of that name.

Only the package's modules of single games are loaded. The package itself imports plotting libraries, which takes
seconds and is not needed here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.options import GameOptions, checked_flag

SIDE = 10
FULL = 255  # an occupied cell; images of bytes are divided by this before they reach a network
PIXELS_PER_CELL = 16
ACTION_NAMES = {
    "asterix": ("nothing", "left", "up", "right", "down"),
    "breakout": ("nothing", "left", "right"),
    "freeway": ("nothing", "up", "down"),
    "seaquest": ("nothing", "left", "up", "right", "down", "fire"),
    "space_invaders": ("nothing", "left", "right", "fire"),
}
GAMES = tuple(ACTION_NAMES)
CHANNELS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
COLOURS = np.array(
    [
        (230, 230, 230),
        (240, 90, 70),
        (150, 90, 40),
        (250, 200, 70),
        (90, 190, 120),
        (80, 150, 240),
        (180, 120, 230),
        (70, 200, 210),
        (240, 150, 190),
        (160, 170, 60),
    ],
    np.uint8,
)


@dataclass(frozen=True, kw_only=True)
class MinAtarOptions(GameOptions):
    """Settings of one MinAtar game, checked when made."""

    ACTION_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = ACTION_NAMES
    max_steps: int | None = 5_000
    """Step limit; the package limits only Freeway, to 2,500."""
    sticky_action_chance: float = 0.1
    """Probability that a step repeats the previous action; the default is the package's."""
    difficulty_ramping: bool = True
    """Whether games become harder over time, as in the package."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("difficulty_ramping", self.difficulty_ramping)

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """The games have no highest score."""
        return None


class MinAtarEnv(gymnasium.Env[NDArray[np.uint8], Any]):
    """One game; an episode depends only on the seed of its reset and on the actions."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own attribute)

    def __init__(self, options: MinAtarOptions, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._game = _game_module(options.game).Env(ramping=options.difficulty_ramping)
        self._sticky = options.sticky_action_chance
        # Freeway ends by its clock alone, which the agent cannot see: that is a time limit.
        self._ends_by_clock = options.game == "freeway"
        self._actions: list[int] = self._game.minimal_action_set()
        self._last = 0
        shape = (SIDE, SIDE, CHANNELS[options.game])
        self.observation_space = gymnasium.spaces.Box(0, FULL, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(self._actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start an episode; a seed also seeds the game."""
        super().reset(seed=seed)
        if seed is not None:
            self._game.random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
        self._last = 0
        self._game.reset()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Take one step."""
        if self._game.random.rand() >= self._sticky:
            self._last = self._actions[int(action)]
        reward, ended = self._game.act(self._last)
        terminated, truncated = bool(ended) and not self._ends_by_clock, bool(ended) and self._ends_by_clock
        return self._observation(), float(reward), terminated, truncated, {}

    def render(self) -> NDArray[np.uint8]:
        """Return a picture: each cell in the colour of the last of the things on it."""
        occupied = self._game.state().astype(np.bool_)
        picture = np.zeros((SIDE, SIDE, 3), np.uint8)
        for channel in range(occupied.shape[2]):
            picture[occupied[:, :, channel]] = COLOURS[channel]
        return picture.repeat(PIXELS_PER_CELL, axis=0).repeat(PIXELS_PER_CELL, axis=1)

    def _observation(self) -> NDArray[np.uint8]:
        observation: NDArray[np.uint8] = self._game.state().astype(np.uint8) * np.uint8(FULL)
        return observation


def make_minatar(options: MinAtarOptions, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Return one game as a plain environment."""
    return gymnasium.wrappers.TimeLimit(MinAtarEnv(options, render_mode), options.step_limit)


@lru_cache(maxsize=len(GAMES))
def _game_module(game: str) -> Any:
    """Return the package's module of a game, without importing the package."""
    package = importlib.util.find_spec("minatar")
    if package is None or package.origin is None:
        raise ImportError("MinAtar tasks need the package MinAtar: pip install 'backsweep[minatar]'")
    path = Path(package.origin).parent / "environments" / f"{game}.py"
    spec = importlib.util.spec_from_file_location(f"backsweep_minatar_{game}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise ImportError(f"the installed package MinAtar has no game {game}: {path} is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
