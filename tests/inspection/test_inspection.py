"""What `backsweep inspect` and `inspect_env` say of environments whose answer is known."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import DiscreteKey, ExactBytes, GraphValues, Quantized, RandomProjection, Replay, inspect_env
from backsweep.cli import main
from backsweep.inspection.advice import advise
from backsweep.inspection.measures import Measures, measure, play_randomly


class Corridor(gym.Env[Any, Any]):
    """States 0 to 4 in a row; action 1 goes right, 0 stays. Every second episode starts at 3."""

    def __init__(self, space: gym.Space[Any] | None = None, steps: int = 1000) -> None:
        self.observation_space = gym.spaces.Discrete(5) if space is None else space
        self.action_space = gym.spaces.Discrete(2)
        self.steps, self.episodes = steps, 0

    def observe(self) -> Any:
        return self.state

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.time = (0, 3)[self.episodes % 2], 0
        self.episodes += 1
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.state, self.time = self.state + int(action), self.time + 1
        ended = self.state == 4
        return self.observe(), float(ended), ended, self.time >= self.steps, {}


class Noisy(Corridor):
    """The corridor seen through a float that is never twice the same."""

    def __init__(self) -> None:
        super().__init__(gym.spaces.Box(-np.inf, np.inf, (1,), np.float32))

    def observe(self) -> Any:
        return np.array([self.state + 0.01 * self.np_random.random()], np.float32)


def test_a_corridor_is_counted_exactly() -> None:
    found = inspect_env(Corridor(), steps=2_000)
    (choice,) = found.choices
    assert choice.encoder == found.encoder == DiscreteKey()
    assert (found.verdict, choice.states, choice.end_states) == ("yes", 5, 1)
    # States 1, 2 and 4 are each entered for the first time once; 0 and 3 are first seen as starts or entered.
    assert choice.repeated in (1 - 3 / 2_000, 1 - 4 / 2_000)
    assert choice.reach_end == choice.agreement == 1.0
    assert found.terminations == found.paid_ends
    assert found.truncations == 0
    assert found.episodes - found.terminations in (0, 1)
    assert found.rewards == (0.0, 1.0)


def test_an_end_counts_for_starts_whose_own_episode_never_got_there() -> None:
    """Episodes of 3 steps from 0 never reach 4 themselves; those from 3 do, and share the state 3 with them."""
    found = inspect_env(Corridor(steps=3), steps=2_000)
    assert found.truncations > found.episodes // 3
    assert found.measures.reach_end == 1.0


def test_states_that_never_come_back_get_a_grid_whose_cells_do() -> None:
    found = inspect_env(Noisy(), steps=1_000)
    exact = [choice for choice in found.choices if not isinstance(choice.encoder, Quantized)]
    assert [type(choice.encoder) for choice in exact] == [RandomProjection, ExactBytes]
    assert exact[1].repeated < 0.01
    assert found.verdict == "maybe"
    assert isinstance(found.encoder, Quantized)
    assert found.measures.repeated > 0.5
    assert repr(found.encoder) in found.recommendation


def test_the_same_seed_plays_the_same_steps() -> None:
    first, second, other = (inspect_env("Taxi-v4", 500, seed) for seed in (1, 1, 2))
    assert first == second
    assert first.choices != other.choices


@pytest.mark.parametrize(
    ("env", "verdict", "steps"),
    [
        ("FrozenLake-v1", "yes", 2_000),
        ("Taxi-v4", "yes", 2_000),
        ("minigrid/doorkey", "yes", 20_000),
        ("CartPole-v1", "maybe", 2_000),
        ("Pendulum-v1", "no", 500),
    ],
)
def test_known_environments(env: str, verdict: str, steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", env, "--steps", str(steps), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == verdict, found["recommendation"]
    share = found["choices"][0]["repeated"]
    assert f"({share:.1%} of steps)" in found["recommendation"]


def test_an_environment_of_the_users_own_is_left_open_and_its_actions_untouched() -> None:
    env = gym.make("CartPole-v1")
    env.action_space.seed(3)
    expected = [int(env.action_space.sample()) for _ in range(20)]
    env.action_space.seed(3)
    assert inspect_env(env, 50).environment == "CartPole-v1"
    assert [int(env.action_space.sample()) for _ in range(20)] == expected
    env.reset()
    env.close()


def test_texts_in_observations_are_left_out() -> None:
    space = gym.spaces.Dict({"state": gym.spaces.Discrete(5), "mission": gym.spaces.Text(30)})

    class Told(Corridor):
        def observe(self) -> Any:
            return {"state": self.state, "mission": "go right"}

    assert inspect_env(Told(space), 200).measures.states == 5


def test_rewards_that_a_replay_refuses_are_refused() -> None:
    class Broken(Corridor):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return super().step(action)[0], float("nan"), False, False, {}

    with pytest.raises(ValueError, match="rewards must be finite, got nan in step 1"):
        inspect_env(Broken(gym.spaces.Discrete(5)), 20)


def measures(
    encoder: Any, repeated: float, *, states: int = 10, ends: int = 1, agreement: float = 1.0, noise: float = 0.0
) -> Measures:
    return Measures(encoder, states, repeated, ends, 0.5, agreement, noise)


@pytest.mark.parametrize(
    ("choices", "discrete", "differ", "verdict", "encoder"),
    [
        ([measures(DiscreteKey(), 0.9)], True, True, "yes", DiscreteKey()),
        ([measures(DiscreteKey(), 0.9, ends=0)], True, False, "maybe", DiscreteKey()),
        ([measures(DiscreteKey(), 0.9, ends=0)], True, True, "yes", DiscreteKey()),
        ([measures(DiscreteKey(), 0.9)], False, True, "maybe", DiscreteKey()),
        ([measures(DiscreteKey(), 0.2)], True, True, "maybe", DiscreteKey()),
        ([measures(RandomProjection(), 0.9, states=9), measures(ExactBytes(), 0.9)], True, True, "yes", ExactBytes()),
        ([measures(RandomProjection(), 0.9), measures(ExactBytes(), 0.9)], True, True, "yes", RandomProjection()),
        ([measures(ExactBytes(), 0.0), measures(Quantized(1.0), 0.9)], True, True, "maybe", Quantized(1.0)),
        ([measures(ExactBytes(), 0.0), measures(Quantized(1.0), 0.9)], False, True, "no", ExactBytes()),
        (
            [measures(ExactBytes(), 0.0), measures(Quantized(1.0), 0.9, agreement=0.4)],
            True,
            True,
            "maybe",
            ExactBytes(),
        ),
        ([measures(DiscreteKey(), 0.59, agreement=0.68, noise=0.4)], True, True, "no", DiscreteKey()),
        ([measures(DiscreteKey(), 0.2, agreement=0.87, noise=0.2)], True, True, "maybe", DiscreteKey()),
        ([measures(DiscreteKey(), 0.99, agreement=0.43)], True, True, "yes", DiscreteKey()),
        ([measures(DiscreteKey(), 0.05, agreement=float("nan"))], True, True, "maybe", DiscreteKey()),
    ],
)
def test_advice_follows_from_the_measures(
    choices: list[Measures], discrete: bool, differ: bool, verdict: str, encoder: Any
) -> None:
    for pays in (False, True):
        found = advise(choices, discrete_actions=discrete, rewards_differ=differ, every_end_pays=pays, steps=100)
        assert (found.verdict, found.encoder) == (verdict, encoder)
        assert ("swept rows" in found.recommendation) == (pays and verdict == "yes")


class PaidSteps(gym.Wrapper[Any, Any, Any, Any]):
    """Every step pays as much as an end does."""

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, 1.0, terminated, truncated, info


@pytest.mark.parametrize(
    ("env", "swept"),
    [
        ("sokoban/5x5-1", True),
        ("minigrid/lavacrossing-easy", False),
        (PaidSteps(gym.make("FrozenLake-v1")), False),
    ],
)
def test_sweeps_are_suggested_where_every_end_is_a_goal(env: Any, swept: bool) -> None:
    found = inspect_env(env, steps=4_000)
    assert found.verdict == "yes"
    assert ("Mixture([(0.8, Topological(trees='separate'))" in found.recommendation) == swept


def test_the_report_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "nchain-5", "--steps", "300"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("nchain-5: 300 random steps, ")
    assert "* DiscreteKey()" in text
    assert text.splitlines()[-1].startswith("yes: states repeat (")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-env"], ("no-such-env", "backsweep tasks")),
        (["no.such.module:Env-v0"], ("no.such.module",)),
        (["FrozenLake-v1", "--steps", "0"], ("steps must be 1 or more", "0")),
        (["FrozenLake-v1", "--seed", "-1"], ("seed", "-1")),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("backsweep: ")
    assert len(error.splitlines()) == 2
    for word in words:
        assert word in error


def test_what_is_not_an_environment_is_refused() -> None:
    with pytest.raises(TypeError, match="env must be a name or a gymnasium"):
        inspect_env(gym.make_vec("CartPole-v1", 2))  # type: ignore[arg-type]


def test_noise_is_what_a_replay_measures() -> None:
    """A replay of the same random steps finds the same noise as the report."""
    env = gym.make("FrozenLake-v1")
    play = play_randomly(env, 2_000, seed=3)
    ((encoder, keys),) = play.keys.items()
    replay = Replay(env.observation_space, env.action_space, 2_000, encoder=encoder, values=GraphValues(), gamma=0.9)
    state = keys[:, 0]
    for place, moment in enumerate(play.moment.tolist()):
        last = place + 1 == len(play.moment) or play.moment[place + 1] != moment + 1
        ended = bool(play.terminated[place])
        replay.add(
            int(state[moment]),
            int(play.action[place]),
            float(play.reward[place]),
            int(state[moment + 1]),
            ended,
            bool(last and not ended),
        )
    replay.renew_values(lambda seen: np.zeros((len(seen), 4)))
    assert measure(play, encoder, keys).noise == pytest.approx(replay.stats()["noise"])
    assert replay.stats()["noise"] > 0
