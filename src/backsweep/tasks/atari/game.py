"""One Atari game: the emulator with the usual preprocessing in one step, without wrappers.

Observations, rewards and ends are those of Gymnasium's `FrameStackObservation(AtariPreprocessing(env), 4)` with the
same seed. Its wrappers read the screen after every frame; here only the two frames that are shown are read.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.atari.screen import area_table
from backsweep.tasks.atari.screen_kernels import shrink

FRAMES_PER_STEP = 4
FRAMES_STACKED = 4
SIDE = 84


class AtariGame(gymnasium.Env[NDArray[np.uint8], int]):
    """A game as stacks (4, 84, 84) of its last grey pictures, one for every four frames.

    Parameters
    ----------
    name
        The game, as ale-py calls it.
    step_limit
        Steps after which the caller ends the episode: the emulator's own limit must not apply before.
    noop_max
        An episode starts with one to this many frames of doing nothing, 0 for none.
    sticky_action_chance
        Probability that a frame repeats the previous action.
    terminal_on_life_loss
        Whether losing a life ends the episode.
    render_mode
        None, "rgb_array" or "human".
    """

    metadata = {"render_modes": ["rgb_array", "human"]}  # noqa: RUF012 (Gymnasium's own attribute)

    def __init__(
        self,
        name: str,
        *,
        step_limit: int,
        noop_max: int,
        sticky_action_chance: float,
        terminal_on_life_loss: bool,
        render_mode: str | None = None,
    ) -> None:
        from ale_py.env import AtariEnv

        made: Any = AtariEnv
        self.render_mode = render_mode
        self._emulator = made(
            name,
            obs_type="ram",  # the cheapest: pictures are read here
            frameskip=1,
            repeat_action_probability=sticky_action_chance,
            max_num_frames_per_episode=FRAMES_PER_STEP * (step_limit + noop_max + 1),
            render_mode=render_mode,
        )
        self._noop_max, self._ends_with_life = noop_max, terminal_on_life_loss
        self._ale = self._emulator.ale
        self._actions = self._ale.getMinimalActionSet()
        self.action_space: Any = gymnasium.spaces.Discrete(len(self._actions))
        self.observation_space: Any = gymnasium.spaces.Box(0, 255, (FRAMES_STACKED, SIDE, SIDE), np.uint8)
        height, width = self._ale.getScreenDims()
        self._tables = (*area_table(width, SIDE), *area_table(height, SIDE))
        self._screens = np.zeros((2, height, width), np.uint8)
        self._stack = np.zeros((FRAMES_STACKED, SIDE, SIDE), np.uint8)
        self._lives = 0

    def get_action_meanings(self) -> list[str]:
        """Return the actions' names."""
        names: list[str] = self._emulator.get_action_meanings()
        return names

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start an episode; a seed also reseeds the emulator."""
        _, info = self._emulator.reset(seed=seed, options=options)
        noops = self._emulator.np_random.integers(1, self._noop_max + 1) if self._noop_max > 0 else 0
        for _ in range(noops):
            _, _, terminated, truncated, _ = self._emulator.step(0)
            if terminated or truncated:
                self._emulator.reset(seed=seed, options=options)
        self._lives = self._ale.lives()
        self._ale.getScreenGrayscale(self._screens[0])
        self._screens[1] = 0
        shrink(self._screens, *self._tables, self._stack[-1])
        self._stack[:-1] = self._stack[-1]
        return self._stack.copy(), info

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Repeat an action for four frames, or until the episode ends; show the brighter of the last two frames."""
        chosen, reward, terminated, truncated = self._actions[action], 0.0, False, False
        for frame in range(FRAMES_PER_STEP):
            reward += self._ale.act(chosen)
            terminated, truncated = self._ale.game_over(with_truncation=False), self._ale.game_truncated()
            if self._ends_with_life:
                lives = self._ale.lives()
                terminated = terminated or lives < self._lives
                self._lives = lives
            if terminated or truncated:
                break
            if frame >= FRAMES_PER_STEP - 2:
                self._ale.getScreenGrayscale(self._screens[FRAMES_PER_STEP - 1 - frame])
        self._stack[:-1] = self._stack[1:]
        shrink(self._screens, *self._tables, self._stack[-1])
        # If the next step ends before its last frame, it shows this picture's pixels in place of that frame's.
        np.maximum(self._screens[0], self._screens[1], out=self._screens[0])
        return self._stack.copy(), reward, terminated, truncated, {"lives": self._ale.lives()}

    def render(self) -> Any:
        """Return the screen in colour."""
        return self._emulator.render()

    def close(self) -> None:
        """Release the emulator."""
        self._emulator.close()
