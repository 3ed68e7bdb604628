"""A run: everything that belongs to one run except its network parameters, which are stacked with those of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import task_of, task_options
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.learner.backward_targets import BackwardTargets
from backsweep.agent.learner.exploration import EpsilonSchedule, Explorer
from backsweep.agent.learner.targets import discounts
from backsweep.agent.methods import Method, method_for
from backsweep.checks import is_int, is_number
from backsweep.encoding import Encoder, ExactBytes, Quantized, RandomProjection
from backsweep.encoding.discrete import is_discrete
from backsweep.jit.random_streams import generator_state, named_generator, restore_generator
from backsweep.planning.planner import QValues
from backsweep.replay import Replay
from backsweep.snapshot.contents import need, need_like, need_within
from backsweep.snapshot.saved_component import arrays_below
from backsweep.tasks.environments import Environments, Outcome, State, make_environments
from backsweep.types import Batch


class Run:
    """One run's environments, replay, generators and running counts."""

    def __init__(self, config: RunConfig, replay: Replay | None = None) -> None:
        self.config = config
        self.method: Method = method_for(config)
        self.envs: Environments = run_environments(config, "environment", config.num_envs)
        self.explorer = Explorer(config.seed, config.num_envs)
        self.schedule = epsilon_schedule(config)
        self.waits_for_reward = config.explore_until_reward
        """Whether every reward so far was 0, and the run explores until there is another."""
        self.waited_steps = 0
        """Steps for which it did; epsilon falls from there on."""
        self.replay = make_replay(config, self.method, self.envs) if replay is None else replay
        check_replay(self.replay, config, self.method, self.envs)
        self.backward = (
            BackwardTargets(self.method.rule, self.replay, config.bootstrap_at_timeout)
            if self.method.rule.kind == "backward"
            else None
        )
        self.reward_scale = given_reward_scale(config)
        """The factor of rewards for learning; None until it is estimated."""
        self.bounds = return_bounds(config)
        self.values_due = self.method.values is not None
        """Whether graph values have to be renewed before the next update."""
        self.observations: NDArray[Any] = self.envs.reset()
        self.returns = np.zeros(config.num_envs)
        self.lengths = np.zeros(config.num_envs, np.int64)
        self.episodes = 0
        self.finished_returns: list[float] = []  # since the last training record
        self.finished_lengths: list[int] = []

    def epsilon(self, step: int) -> float:
        """Return the probability of a random action at a step."""
        return self.schedule(step, None if self.waits_for_reward else self.waited_steps)

    def random_actions(self, step: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which environments act at random at a step, and their random actions."""
        random, units = self.explorer.draw(self.epsilon(step))
        actions = (units * self.envs.num_actions).astype(np.int64)
        if self.config.explore == "graph":
            for env in np.flatnonzero(random).tolist():
                actions[env] = self.replay.explore(self.observations[env], units[env])
        return random, actions

    def step(self, actions: NDArray[np.int64], clock: Clock) -> None:
        """Execute the actions and store the transitions."""
        outcome = self.envs.step(actions)
        clock.lap("environment")
        self._remember(actions, outcome)
        clock.lap("replay")
        self.observations = outcome.observations
        self.returns += outcome.rewards
        if self.waits_for_reward:
            self.waits_for_reward = not outcome.rewards.any()
            self.waited_steps += self.config.num_envs if self.waits_for_reward else 0
        self.lengths += 1
        if outcome.finals is not None:
            for env in np.flatnonzero(outcome.terminated | outcome.truncated).tolist():
                self.finished_returns.append(float(self.returns[env]))
                self.finished_lengths.append(int(self.lengths[env]))
                self.returns[env], self.lengths[env] = 0.0, 0
                self.episodes += 1

    def _remember(self, actions: NDArray[np.int64], outcome: Outcome) -> None:
        if self.config.num_envs > 1:
            self.replay.add(
                self.observations,
                actions,
                outcome.rewards,
                outcome.observations,
                outcome.terminated,
                outcome.truncated,
                final_observation=outcome.finals,
            )
            return
        successor = outcome.observations[0] if outcome.finals is None else outcome.finals[0]
        self.replay.add(
            self.observations[0],
            actions[0],
            float(outcome.rewards[0]),
            successor,
            outcome.terminated[0],
            outcome.truncated[0],
        )

    def sample(self) -> Batch:
        """Draw a batch; if time limits count as terminations, truncated rows do not bootstrap."""
        batch = self.replay.sample(self.config.batch_size)
        batch.discount = discounts(batch, self.replay, self.config.bootstrap_at_timeout)
        return batch

    def estimate_reward_scale(self) -> float:
        """Set the reward scale from the stored rewards, unless it is already set; it then stays fixed."""
        if self.reward_scale is None:
            largest = max(map(abs, self.replay.return_range()))
            if not largest and self.config.explore_until_reward:
                return 1.0
            self.reward_scale = 1.0 / largest if largest > 0 else 1.0
        return self.reward_scale

    def renew_values(self, q_values: QValues) -> None:
        """Plan on the stored graph, if the method uses graph values and they are due."""
        if self.values_due:
            self.replay.renew_values(q_values, bounds=self.bounds)
            self.values_due = False

    def state(self) -> State:
        """Return the state of the run without its replay, as arrays and plain JSON values."""
        env_arrays, env_values = self.envs.state()
        arrays = {f"envs/{name}": array for name, array in env_arrays.items()}
        arrays.update(observations=self.observations, returns=self.returns, lengths=self.lengths)
        if self.backward is not None:
            arrays.update({f"backward/{name}": array for name, array in self.backward.state().items()})
        return arrays, {
            "envs": env_values,
            "explorer": generator_state(self.explorer.generator),
            "episodes": self.episodes,
            "reward_scale": self.reward_scale,
            "values_due": self.values_due,
            "waits_for_reward": self.waits_for_reward,
            "waited_steps": self.waited_steps,
            "finished_returns": list(self.finished_returns),
            "finished_lengths": list(self.finished_lengths),
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Restore what `state` returned; raise a ValueError if it is not the state of such a run.

        The replay was given to the constructor.
        """
        for name in ("observations", "returns", "lengths"):
            need_like(arrays, name, getattr(self, name))
        space = self.envs.observation_space
        if isinstance(space, gym.spaces.Discrete):
            need_within(arrays["observations"], int(space.start), int(space.start + space.n), "observations")
        check_counts(values)
        self.envs.load_state(arrays_below(arrays, "envs/"), values["envs"])
        self.observations = arrays["observations"].copy()
        self.returns, self.lengths = arrays["returns"].copy(), arrays["lengths"].copy()
        if self.backward is not None:
            self.backward.load_state(arrays_below(arrays, "backward/"))
        restore_generator(self.explorer.generator, values["explorer"])
        self.episodes = values["episodes"]
        self.reward_scale = values.get("reward_scale", self.reward_scale)
        self.values_due = values.get("values_due", self.values_due)
        self.waits_for_reward = values.get("waits_for_reward", False)  # older runs do not wait
        self.waited_steps = values.get("waited_steps", 0)
        self.finished_returns = list(values["finished_returns"])
        self.finished_lengths = list(values["finished_lengths"])


def check_counts(values: Mapping[str, Any]) -> None:
    """Need the counts in a saved state to be counts, and the other numbers to be numbers."""
    scale, due = values.get("reward_scale"), values.get("values_due", False)
    waits, waited = values.get("waits_for_reward", False), values.get("waited_steps", 0)
    returns, lengths = values["finished_returns"], values["finished_lengths"]
    need(is_int(values["episodes"]) and values["episodes"] >= 0, "the number of episodes is out of range")
    need(scale is None or (is_number(scale) and scale > 0), "the scale of rewards is not a positive number")
    need(isinstance(due, bool), "values_due is not a bool")
    need(isinstance(waits, bool), "waits_for_reward is not a bool")
    need(is_int(waited) and waited >= 0, "the number of steps without a reward is out of range")
    need(isinstance(returns, list) and all(map(is_number, returns)), "returns of episodes are not numbers")
    need(isinstance(lengths, list) and all(map(is_int, lengths)), "lengths of episodes are not integers")
    need(len(returns) == len(lengths), "there are not as many returns of episodes as lengths")


def run_environments(
    config: RunConfig, purpose: str, num_envs: int, *, render: bool = False, longest: int | None = None
) -> Environments:
    """Return a run's environments for a purpose; each purpose has its own seed, independent of the method.

    `longest` is where episodes are cut that have no time limit.
    """
    seed, options = environment_seed(config, purpose), task_options(config)
    return make_environments(config.task, config.env, num_envs, seed, options, render=render, longest=longest)


def environment_seed(config: RunConfig, purpose: str) -> int:
    """Return the root seed of a run's environments for a purpose."""
    return int(named_generator(config.seed, "environments", purpose).integers(2**31))


def return_bounds(config: RunConfig) -> tuple[float, float] | None:
    """Return the worst and best return of an episode, None if unknown."""
    task = task_of(config)
    if task is None:
        return None
    bounds: tuple[float, float] | None = task.options(**task_options(config)).return_bounds
    return bounds


def given_reward_scale(config: RunConfig) -> float | None:
    """Return the factor of a run's rewards, None if it is to be estimated from the stored rewards."""
    if config.reward_scale != "auto":
        return config.reward_scale
    bounds = return_bounds(config)
    if bounds is None:
        return None
    return 1.0 / (max(map(abs, bounds)) or 1.0)  # of a task that never pays


def epsilon_schedule(config: RunConfig) -> EpsilonSchedule:
    """Return the schedule of the probability of random actions."""
    return EpsilonSchedule(
        start=config.epsilon_start,
        end=config.epsilon_end,
        steps=config.epsilon_steps,
        random_steps=config.warmup_steps if config.random_warmup else 0,
    )


def encoder_for(config: RunConfig) -> Encoder:
    """Return the run's encoder."""
    if config.encoder == "quantized":
        return Quantized(config.cell[0] if len(config.cell) == 1 else config.cell)
    return ExactBytes() if config.encoder == "bytes" else RandomProjection(dim=config.dimension)


def make_replay(config: RunConfig, method: Method, envs: Environments) -> Replay:
    """Return the run's empty replay."""
    return Replay(
        sampler=method.sampler,
        encoder=None if is_discrete(envs.observation_space) else encoder_for(config),
        check_autoreset="off",  # the loop passes true last observations, and small tasks may end where they start
        frame_stack=stored_frames(config),
        seed=config.seed,
        **replay_form(config, method, envs),
    )


def stored_frames(config: RunConfig) -> int:
    """Return how many parts of an observation the run's replay stores once each: stacked frames, or bands of an image.

    Batches do not depend on it.
    """
    task = task_of(config)
    if config.frame_stack > 1 or task is None:
        return config.frame_stack
    return task.options(**task_options(config)).bands


def replay_form(config: RunConfig, method: Method, envs: Environments) -> dict[str, Any]:
    """Return the settings of a run's replay that the loop, its kernels and its networks rely on."""
    return {
        "observation_space": envs.observation_space,
        "action_space": gym.spaces.Discrete(envs.num_actions),
        "capacity": config.capacity,
        "values": method.values,
        "n_step": method.n_step,
        "num_envs": config.num_envs,
        "gamma": config.discount,
    }


def check_replay(replay: Replay, config: RunConfig, method: Method, envs: Environments) -> None:
    """Refuse a loaded replay that is not one of this run: kernels take its rows for observations of the task."""
    settings = replay.settings()
    for name, expected in replay_form(config, method, envs).items():
        if settings[name] != expected:
            raise ValueError(f"its replay has {name}={settings[name]!r}, and the run needs {expected!r}")
