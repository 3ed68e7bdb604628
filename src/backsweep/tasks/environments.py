"""The environments of one run, with an interface to save and restore them.

    reset() -> observations                       (envs, ...)
    step(actions) -> Outcome                      next observations, rewards, ends, last observations
    state() / load_state()                        everything that the next step depends on

The state of the project's own tasks is saved as arrays. For environments of other packages, the seed and the actions of
the current episode are saved and replayed, which is exact if the environment is deterministic given its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int
from backsweep.jit.random_streams import generator_state, named_generator, restore_generator
from backsweep.snapshot.contents import need, need_within
from backsweep.tasks.gymnasium_env import DRAWING, first_observation, gymnasium_env, has_limit, take_step
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.lanes import Lanes
from backsweep.tasks.make import make, make_single
from backsweep.tasks.observations import OneArray, with_one_array
from backsweep.tasks.registry import find_task

State = tuple[dict[str, NDArray[Any]], dict[str, Any]]
LARGEST_RESET_SEED = 2**31 - 1  # many environments accept no larger seed


@dataclass(slots=True)
class Outcome:
    """The result of a step.

    `observations` are those to act on: after an end, the first of the next episode. The true successor is then in
    `finals`.
    """

    observations: NDArray[Any]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    finals: Sequence[Any] | None


class Environments(Protocol):
    """The environments of one run."""

    num_envs: int
    observation_space: gym.Space[Any]
    num_actions: int

    def reset(self) -> NDArray[Any]:
        """Start an episode in every environment."""

    def step(self, actions: NDArray[np.int64]) -> Outcome:
        """Step every environment; those whose episode ends start the next one."""

    def state(self) -> State:
        """Return the state of the environments, as arrays and plain JSON values."""

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Restore a state that `state` returned."""

    def picture(self) -> NDArray[np.uint8]:
        """Return an RGB image of the first environment."""

    def close(self) -> None:
        """Release the environments' resources."""


class TaskEnvironments:
    """Lanes of one of the project's own tasks."""

    def __init__(self, env: LaneVectorEnv) -> None:
        self._env = env
        self.num_envs = env.num_envs
        self.observation_space = env.single_observation_space
        self.num_actions = int(env.lanes.single_action_space.n)

    def reset(self) -> NDArray[Any]:
        """Start an episode in every environment."""
        observations: NDArray[Any] = self._env.reset()[0]
        return observations

    def step(self, actions: NDArray[np.int64]) -> Outcome:
        """Move every environment."""
        observations, rewards, terminated, truncated, infos = self._env.step(actions)
        return Outcome(observations, rewards, terminated, truncated, infos.get("final_obs"))

    @property
    def lanes(self) -> Lanes:
        """The lanes themselves."""
        return self._env.lanes

    def state(self) -> State:
        """Return the lanes' arrays."""
        return self.lanes.state(), {}

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Write the lanes' arrays."""
        self._env.reset()
        self.lanes.load_state(arrays)

    def picture(self) -> NDArray[np.uint8]:
        """Draw the first lane."""
        return self.lanes.picture(0)

    def close(self) -> None:
        """Do nothing: there are no resources."""


class ForeignEnvironments:
    """Environments from other packages, one `gymnasium.Env` each; every episode has its own seed."""

    def __init__(self, makers: Sequence[Callable[[], gym.Env[Any, Any]]], seed: int) -> None:
        self._envs = [with_one_array(maker()) for maker in makers]
        self._generators = [named_generator(seed, "episodes", str(index)) for index in range(len(makers))]
        self._seeds = [0] * len(makers)
        self._actions: list[list[int]] = [[] for _ in makers]
        self._seen: list[NDArray[Any]] = [np.empty(0)] * len(makers)
        self.num_envs = len(makers)
        self.observation_space = self._envs[0].observation_space
        action_space = self._envs[0].action_space
        if not isinstance(action_space, gym.spaces.Discrete):
            raise ValueError(f"the environment must have a Discrete action space, got {action_space}")
        self.num_actions = int(action_space.n)
        self.has_limit = has_limit(self._envs[0])
        self.remark = self._envs[0].remark() if isinstance(self._envs[0], OneArray) else ""
        """What a user should know of the observations."""
        self._first_action = int(action_space.start)

    def _begin(self, index: int) -> NDArray[Any]:
        self._seeds[index] = int(self._generators[index].integers(LARGEST_RESET_SEED))
        self._actions[index] = []
        return self._rounded(first_observation(self._envs[index], self._seeds[index]))

    def _rounded(self, observation: Any) -> NDArray[Any]:
        """Return an observation with its space's floats, which Gymnasium's vectors of environments round to as well."""
        array, dtype = np.asarray(observation), self.observation_space.dtype
        if array.dtype == dtype or dtype is None or dtype.kind != "f" or array.dtype.kind not in "biuf":
            return array
        with np.errstate(over="ignore"):  # the replay refuses infinity
            return array.astype(dtype)

    def reset(self) -> NDArray[Any]:
        """Start an episode in every environment."""
        self._seen = [self._begin(index) for index in range(self.num_envs)]
        return np.stack(self._seen)

    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_] | None = None) -> Outcome:
        """Move every environment that is not resting; the others keep their observation."""
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        finals: list[Any] = [None] * self.num_envs
        for index, action in enumerate(actions.tolist()):
            if resting is not None and resting[index]:
                continue
            self._actions[index].append(action)
            result = take_step(self._envs[index], action + self._first_action)
            observation, rewards[index] = self._rounded(result[0]), float(result[1])
            terminated[index], truncated[index] = result[2], result[3]
            if terminated[index] or truncated[index]:
                finals[index] = observation
                observation = self._begin(index)
            self._seen[index] = observation
        ended = (terminated | truncated).any()
        return Outcome(np.stack(self._seen), rewards, terminated, truncated, finals if ended else None)

    def state(self) -> State:
        """Return each episode's seed and actions, and the generators of further seeds."""
        arrays = {f"actions{index}": np.array(actions, np.int64) for index, actions in enumerate(self._actions)}
        generators = [generator_state(generator) for generator in self._generators]
        return arrays, {"seeds": list(self._seeds), "generators": generators}

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Replay every environment's episode up to the saved step."""
        seeds, generators = values["seeds"], values["generators"]
        need(len(seeds) == len(generators) == self.num_envs, "the number of environments is not the saved one")
        for index, seed in enumerate(seeds):
            need(is_int(seed) and 0 <= seed < LARGEST_RESET_SEED, f"the seed of environment {index} is out of range")
            actions = arrays[f"actions{index}"]
            need(actions.dtype == np.int64 and actions.ndim == 1, f"the actions of environment {index} do not fit")
            need_within(actions, 0, self.num_actions, f"the actions of environment {index}")
        self._seeds = list(seeds)
        for index, env in enumerate(self._envs):
            restore_generator(self._generators[index], generators[index])
            self._actions[index] = arrays[f"actions{index}"].tolist()
            observation = first_observation(env, self._seeds[index])
            for place, action in enumerate(self._actions[index]):
                observation, _, terminated, truncated, _ = take_step(env, action + self._first_action)
                if terminated or truncated:
                    raise ValueError(
                        f"environment {index} ended after {place + 1} of {len(self._actions[index])} steps when it "
                        "was played again: it is not deterministic given its seed, and cannot be resumed exactly"
                    )
            self._seen[index] = self._rounded(observation)

    def picture(self) -> NDArray[np.uint8]:
        """Render the first environment."""
        try:
            image = self._envs[0].render()
        except NotImplementedError:
            image = None
        if not isinstance(image, np.ndarray):
            raise ValueError(f"the environment cannot draw itself: {DRAWING}")
        return image

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs:
            env.close()


def make_environments(
    task: str | None,
    env: str | None,
    num_envs: int,
    seed: int,
    options: dict[str, Any],
    *,
    render: bool = False,
    longest: int | None = None,
) -> Environments:
    """Return the environments of a task, or of a Gymnasium id.

    `longest` cuts the episodes of a Gymnasium environment without a time limit after so many steps.
    """
    mode = "rgb_array" if render else None
    if task is None:
        assert env is not None
        name = env

        def maker() -> gym.Env[Any, Any]:
            made = gymnasium_env(name, mode, options)
            return made if longest is None or has_limit(made) else gym.wrappers.TimeLimit(made, longest)

        return ForeignEnvironments([maker] * num_envs, seed)
    if not find_task(task).is_own:
        return ForeignEnvironments([lambda: make_single(task, mode, **options)] * num_envs, seed)
    vector = make(task, num_envs, seed=seed, **options)
    assert isinstance(vector, LaneVectorEnv)
    return TaskEnvironments(vector)
