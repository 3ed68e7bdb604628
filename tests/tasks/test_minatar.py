"""MinAtar's games, compared with the package that they come from."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from backsweep.tasks import TASKS, make
from backsweep.tasks.minatar import CHANNELS, COLOURS, GAMES, PIXELS_PER_CELL, MinAtarEnv, MinAtarOptions

IDS = [task for task in TASKS if task.startswith("minatar/")]


def package_environment(game: str, seed: int, **options: Any) -> Any:
    """Return the package's own wrapper, which brings its sticky actions, with a generator as ours."""
    minatar = pytest.importorskip("minatar")
    environment = minatar.Environment(game, **options)
    environment.random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
    environment.env.random = environment.random
    return environment


def test_there_is_a_task_for_every_game() -> None:
    assert [TASKS[task].options().game for task in IDS] == list(GAMES)
    for task in IDS:
        space = make(task, num_envs=2).single_observation_space
        assert space == gymnasium.spaces.Box(0, 255, (10, 10, CHANNELS[TASKS[task].options().game]), np.uint8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the plotting libraries that the package imports
@pytest.mark.parametrize("game", GAMES)
def test_steps_are_the_packages(game: str) -> None:
    """The same seed and actions give the same observations, rewards and ends, with sticky actions."""
    env, theirs = MinAtarEnv(MinAtarOptions(game=game)), package_environment(game, 7)
    assert [theirs.env.action_map[index] for index in theirs.minimal_action_set()] == [
        name[0] for name in MinAtarOptions(game=game).action_names
    ]
    observation, _ = env.reset(seed=7)
    theirs.reset()
    generator = np.random.default_rng(0)
    ends, rewards = 0, 0.0
    for _ in range(3_000):
        np.testing.assert_array_equal(observation > 0, theirs.state())
        action = int(generator.integers(len(theirs.minimal_action_set())))
        observation, reward, terminated, truncated, _ = env.step(action)
        their_reward, ended = theirs.act(theirs.minimal_action_set()[action])
        assert reward == their_reward
        assert (terminated, truncated) == ((False, ended) if game == "freeway" else (ended, False))
        rewards += reward
        if ended:
            ends += 1
            observation, _ = env.reset()
            theirs.reset()
            theirs.last_action = 0  # the package goes on with the action of the last episode
    assert ends > 0
    assert rewards > 0 or game == "freeway"  # random play hardly ever crosses


def test_an_episode_depends_on_its_seed_alone() -> None:
    env = MinAtarEnv(MinAtarOptions(game="space_invaders"))

    def play(steps: int) -> list[Any]:
        seen = [env.reset(seed=3)[0]]
        return seen + [env.step(1 + place % 3)[0] for place in range(steps)]

    first = play(60)
    env.reset(seed=4)
    for _ in range(11):
        env.step(3)
    np.testing.assert_array_equal(play(60), first)


def test_options_reach_the_game() -> None:
    def course(chance: float) -> list[int]:
        env = MinAtarEnv(MinAtarOptions(game="breakout", sticky_action_chance=chance))
        env.reset(seed=0)
        moves = [env.step(2 if place % 2 else 1)[0] for place in range(6)]
        return [int(np.flatnonzero(seen[9, :, 0])[0]) for seen in moves]

    assert course(0.0) == [3, 4, 3, 4, 3, 4]
    assert course(1.0) == [4] * 6  # the action before the first is to do nothing
    env = make("minatar/freeway", max_steps=3)
    env.reset()
    for _ in range(2):
        assert not env.step(np.zeros(1, np.int64))[3].any()
    _, _, terminated, truncated, infos = env.step(np.zeros(1, np.int64))
    assert (bool(terminated[0]), bool(truncated[0])) == (False, True)
    assert infos["final_obs"][0].shape == (10, 10, 7)


def test_pictures_show_what_is_seen() -> None:
    env = MinAtarEnv(MinAtarOptions(game="breakout"), render_mode="rgb_array")
    observation, _ = env.reset(seed=1)
    picture = env.render()[::PIXELS_PER_CELL, ::PIXELS_PER_CELL]
    assert picture.shape == (10, 10, 3)
    assert ((picture.sum(axis=2) > 0) == (observation.max(axis=2) > 0)).all()
    assert (picture[9, 4] == COLOURS[0]).all()
