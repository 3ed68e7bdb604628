"""Vector environments of other libraries, and batches for jax."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import GraphValues, Replay, Topological
from backsweep.replay.autoreset import options_of_envs
from worlds import WORLDS

LIMITS = np.array([2.4, 12 * 2 * np.pi / 360])  # where CartPole ends an episode


def check_cart_poles(replay: Replay) -> None:
    """The pole has fallen, or the cart has left, in every last state and in no first one."""
    batch = replay.read(np.arange(replay.oldest, replay.total))
    assert ((np.abs(batch.next_observation[:, [0, 2]]) > LIMITS).any(axis=1) == batch.terminated).all()
    assert not (np.abs(batch.observation[:, [0, 2]]) > LIMITS).any()
    assert batch.terminated.sum() > 5
    assert replay.stats()["episodes_broken_off"] == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch_size", [4, 2])
def test_envpool_in_step_and_as_it_comes(batch_size: int) -> None:
    envpool = pytest.importorskip("envpool", reason="envpool is not installed")
    envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=4, batch_size=batch_size, seed=1)
    replay = Replay.for_envs(envs, 2_000, Topological(), check_autoreset="refuse")
    generator = np.random.default_rng(0)
    if batch_size == 4:
        now, _ = envs.reset()
        for _ in range(100):
            action = generator.integers(0, 2, 4).astype(np.int32)
            following, reward, terminated, truncated, _ = envs.step(action)
            replay.add(now, action, reward, following, terminated, truncated)
            now = following
    else:
        envs.async_reset()
        last: dict[int, Any] = {}
        for _ in range(250):
            observed, reward, terminated, truncated, info = envs.recv()
            numbers = info["env_id"]
            known = [i for i, number in enumerate(numbers) if number in last]
            if known:
                lanes = numbers[known]
                now, action = (np.stack([last[number][k] for number in lanes]) for k in (0, 1))
                ends = terminated[known], truncated[known]
                replay.add(now, action, reward[known], observed[known], *ends, lanes=lanes)
            action = generator.integers(0, 2, len(numbers)).astype(np.int32)
            for i, number in enumerate(numbers):
                last[number] = observed[i].copy(), action[i]
            envs.send(action, numbers)
    check_cart_poles(replay)


def test_stable_baselines3_environments() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="stable-baselines3 is not installed")
    envs = vec_env.DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3)
    replay = Replay.for_envs(envs, 2_000, Topological())
    generator = np.random.default_rng(0)
    now = envs.reset()
    for _ in range(100):
        action = generator.integers(0, 2, 3)
        following, reward, done, infos = envs.step(action)
        truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        finals = [info.get("terminal_observation") for info in infos]
        replay.add(now, action, reward, following, done & ~truncated, truncated, final_observation=finals)
        now = following
    check_cart_poles(replay)


def test_environments_that_never_show_last_observations() -> None:
    """As PufferLib's: known by their module, a number of agents instead of environments, resets inside."""

    class Native:
        single_observation_space = gym.spaces.Discrete(9)
        single_action_space = gym.spaces.Discrete(2)
        num_agents = 5

    Native.__module__ = "pufferlib.environment"
    Emulated = type("Emulated", (Native,), {"emulated": True})
    assert options_of_envs(Emulated())["autoreset"] == "next_step"
    assert options_of_envs(Native()) == {
        "observation_space": Native.single_observation_space,
        "action_space": Native.single_action_space,
        "num_envs": 5,
        "autoreset": "hidden",
    }


@pytest.mark.filterwarnings("ignore")
def test_pufferlib_around_ordinary_environments() -> None:
    """Emulated environments reset in the call after an end, unlike PufferLib's own."""
    vector = pytest.importorskip("pufferlib.vector", reason="pufferlib is not installed")
    from pufferlib.emulation import GymnasiumPufferEnv

    envs = vector.make(
        lambda: GymnasiumPufferEnv(env_creator=gym.make, env_args=["CartPole-v1"]), num_envs=3, backend=vector.Serial
    )
    replay = Replay.for_envs(envs, 2_000, Topological(), check_autoreset="refuse")
    generator = np.random.default_rng(0)
    now = envs.reset(seed=0)[0].copy()
    for _ in range(100):
        action = generator.integers(0, 2, 3)
        following, reward, terminated, truncated, _ = envs.step(action)
        replay.add(now, action, reward, following, terminated, truncated)
        now = following.copy()  # it writes into the same array each time
    check_cart_poles(replay)


@pytest.mark.parametrize("world", ["uint8", "dict", "tuple"])
def test_batches_for_jax(world: str) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    look = WORLDS[world]
    replay = Replay(look.space, gym.spaces.Discrete(2), 20, values=GraphValues() if world == "uint8" else None)
    for state in range(12):
        replay.add(look.observe(state), state % 2, float(state), look.observe(state + 1), state == 11, False)
    batch = replay.sample(8)
    found = batch.to_jax()
    total = jax.jit(lambda given: given.reward + given.discount)(found._replace(row=None))
    np.testing.assert_allclose(total, batch.reward + batch.discount)
    assert found.row.dtype == np.int64
    kept = jax.tree.map(np.array, found.observation)
    assert jax.tree.all(jax.tree.map(np.allclose, kept, batch.observation))  # jax has 32-bit floats
    del batch
    for _ in range(8):
        replay.sample(8)  # into the arrays of the batch that is gone
    assert jax.tree.all(jax.tree.map(np.array_equal, found.observation, kept))
    assert (found.target is None) == (world != "uint8")


def test_jax_arrays_go_in_and_batches_come_out() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    replay = Replay(gym.spaces.Box(-9, 99, (3,), np.float32), gym.spaces.Discrete(4), 50, num_envs=2)
    for time in range(10):
        now = jax.numpy.full((2, 3), float(time), "float32")
        ended = jax.numpy.array([time == 9, False])
        replay.add(now, jax.numpy.array([1, 2]), jax.numpy.ones(2), now + 1, ended, ~ended & (time == 9))
    batch = replay.read(np.arange(20))
    assert (batch.next_observation == batch.observation + 1).all()
    assert batch.observation[:, 0].tolist() == [time for time in range(10) for _ in range(2)]
    assert np.flatnonzero(batch.terminated).tolist() == [18]
    assert replay.sample(4).to_jax().observation.shape == (4, 3)
