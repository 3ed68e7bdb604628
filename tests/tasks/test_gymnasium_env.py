"""What goes wrong in an environment of another package is an error that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import inspect_env
from backsweep.cli import main
from backsweep.tasks.environments import ForeignEnvironments
from backsweep.tasks.gymnasium_env import BrokenEnvironmentError, first_observation, gymnasium_env, take_step


class Corridor(gym.Env[Any, Any]):
    """Ends after three steps."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = gym.spaces.Discrete(4)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int = 3) -> None:
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.state = 0
        return self.state, {}

    def step(self, action: Any) -> Any:
        self.state += 1
        return self.state, 1.0, self.state == self.length, False, {}


class NoLevel(Corridor):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        raise KeyError("level")


class Crashes(Corridor):
    def step(self, action: Any) -> Any:
        if self.state == 2:
            raise RuntimeError("the simulator crashed")
        return super().step(action)


class OldReset(Corridor):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset()[0]


class OldStep(Corridor):
    def step(self, action: Any) -> Any:
        state, reward, ended, _, info = super().step(action)
        return state, reward, ended, info


class Unmade(Corridor):
    def __init__(self, length: Any = 3) -> None:
        self.length = len(length)


class HandsOn(Corridor):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


class Needs(Corridor):
    def __init__(self, level: str) -> None:
        super().__init__()


CLASSES = (Corridor, NoLevel, Crashes, OldReset, OldStep, Unmade, HandsOn, Needs)
BROKEN = [
    (NoLevel, r"NoLevel raised KeyError in reset\(seed=\d+\): 'level'", KeyError),
    (Crashes, r"Crashes raised RuntimeError in step\([01]\): the simulator crashed", RuntimeError),
    (OldReset, r"reset of OldReset must return \(observation, info\), got int", type(None)),
    (
        OldStep,
        r"step of OldStep must return \(observation, reward, terminated, truncated, info\), got tuple of 4",
        type(None),
    ),
]


@pytest.fixture
def registered() -> Iterator[None]:
    for made in CLASSES:
        gym.register(f"{made.__name__}-v0", entry_point=made, disable_env_checker=True)
    yield
    for made in CLASSES:
        del gym.registry[f"{made.__name__}-v0"]


@pytest.mark.parametrize(("made", "message", "cause"), BROKEN)
def test_inspecting_names_the_environment_and_the_call(
    made: type[Corridor], message: str, cause: type[Exception]
) -> None:
    with pytest.raises(BrokenEnvironmentError, match=f"^{message}$") as found:
        inspect_env(made(), steps=20)
    assert isinstance(found.value.__cause__, cause)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("made", "message", "cause"), BROKEN)
def test_the_command_shows_no_traceback(
    made: type[Corridor],
    message: str,
    cause: type[Exception],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = message.replace(made.__name__, f"{made.__name__}-v0")
    monkeypatch.delenv("BACKSWEEP_DEBUG", raising=False)
    assert main(["inspect", f"{made.__name__}-v0", "--steps", "20"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(f"backsweep: {expected}", first)
    assert "BACKSWEEP_DEBUG=1" in second
    monkeypatch.setenv("BACKSWEEP_DEBUG", "1")
    with pytest.raises(BrokenEnvironmentError):
        main(["inspect", f"{made.__name__}-v0", "--steps", "20"])


@pytest.mark.parametrize(("made", "message", "cause"), BROKEN)
def test_so_does_training(made: type[Corridor], message: str, cause: type[Exception]) -> None:
    envs = ForeignEnvironments([made], seed=0)
    with pytest.raises(BrokenEnvironmentError, match=f"^{message}$") as found:
        play(envs)
    assert isinstance(found.value.__cause__, cause)


def play(envs: ForeignEnvironments) -> None:
    envs.reset()
    for _ in range(3):
        envs.step(np.zeros(1, np.int64))


def test_a_sound_environment_is_left_alone() -> None:
    env = Corridor()
    assert first_observation(env, 3) == 0
    assert list(take_step(env, 1)) == [1, 1.0, False, False, {}]
    play(ForeignEnvironments([Corridor], seed=0))


def test_stopping_is_no_fault_of_the_environment() -> None:
    class Stopped(Corridor):
        def step(self, action: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspect_env(Stopped(), steps=20)


def test_long_actions_are_cut() -> None:
    class Many(Crashes):
        action_space = gym.spaces.Box(-1.0, 1.0, (30,))  # type: ignore[assignment]

    with pytest.raises(BrokenEnvironmentError) as found:
        inspect_env(Many(), steps=20)
    assert len(str(found.value)) < 150


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Corridor-v0", {"lenght": 4}, r"Gymnasium cannot make 'Corridor-v0': .*unexpected keyword argument 'lenght'"),
        ("HandsOn-v0", {"lenght": 4}, r"Gymnasium cannot make 'HandsOn-v0': .*unexpected keyword argument 'lenght'"),
        ("Needs-v0", {}, r"Gymnasium cannot make 'Needs-v0': .*missing 1 required positional argument: 'level'"),
        ("Corridor-v0", {"id": 3}, r"Gymnasium cannot make 'Corridor-v0': .*multiple values for argument 'id'"),
    ],
)
def test_wrong_options_are_called_that(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as found:
        gymnasium_env(name, None, options)
    assert not isinstance(found.value, BrokenEnvironmentError)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "options", "message", "cause"),
    [
        (
            "Unmade-v0",
            {},
            r"'Unmade-v0' raised TypeError while it was made: object of type 'int' has no len\(\)",
            TypeError,
        ),
        ("FrozenLake-v1", {"map_name": "9x9"}, "'FrozenLake-v1' raised KeyError while it was made: '9x9'", KeyError),
    ],
)
def test_an_error_inside_a_constructor_is_not_blamed_on_its_options(
    name: str, options: dict[str, Any], message: str, cause: type[Exception]
) -> None:
    with pytest.raises(BrokenEnvironmentError, match=f"^{message}$") as found:
        gymnasium_env(name, None, options)
    assert isinstance(found.value.__cause__, cause)


@pytest.mark.usefixtures("registered")
def test_inspecting_what_cannot_be_made_says_why() -> None:
    with pytest.raises(BrokenEnvironmentError, match=r"^'Unmade-v0' raised TypeError while it was made"):
        inspect_env("Unmade-v0", steps=20)


@pytest.mark.usefixtures("registered")
def test_only_drawing_needs_a_render_mode() -> None:
    gymnasium_env("Corridor-v0", None, {}).close()
    with pytest.raises(ValueError, match="'Corridor-v0' cannot draw itself"):
        gymnasium_env("Corridor-v0", "rgb_array", {})
