"""How many updates until a chain of states is solved, under different replay? A table, offline data, no network.

Run it: python examples/order_matters.py
"""

import gymnasium as gym
import numpy as np

from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological, Uniform

LENGTH, BATCH, DISCOUNT = 20, 8, 0.99
SAMPLERS = {
    "uniform": Uniform(),
    "prioritized": Prioritized(),
    "episodic backward": EpisodicBackward(),
    "topological": Topological(),
    "topological + prioritized": Mixture([(0.5, Topological()), (0.5, Prioritized())]),
}


def collect(sampler, seed):
    """Fill a replay with a random walk on the chain; only the last state gives a reward, and ends the episode."""
    replay = Replay(gym.spaces.Discrete(LENGTH), gym.spaces.Discrete(2), 5_000, sampler, gamma=DISCOUNT, seed=seed)
    rng = np.random.default_rng(seed)
    state = 0
    for _ in range(5_000):
        action = int(rng.integers(2))
        following = min(state + 1, LENGTH - 1) if action else max(state - 1, 0)
        done = following == LENGTH - 1
        replay.add(state, action, float(done), following, terminated=done, truncated=False)
        state = 0 if done else following
    return replay


def updates_until_solved(replay, limit=5_000):
    """Back up batches in a table until the greedy policy walks straight to the goal."""
    q = np.zeros((LENGTH, 2))
    for update in range(1, limit + 1):
        batch = replay.sample(BATCH)
        target = batch.reward + batch.discount * q[batch.next_observation].max(axis=1)
        error = target - q[batch.observation, batch.action]
        q[batch.observation, batch.action] = target
        replay.update_priorities(batch.row, error)
        if (q[: LENGTH - 1, 1] > q[: LENGTH - 1, 0]).all():
            return update
    return limit


if __name__ == "__main__":
    print(f"updates of {BATCH} rows until a chain of {LENGTH} states is solved, median of 5 data sets")
    for name, sampler in SAMPLERS.items():
        counts = [updates_until_solved(collect(sampler, seed)) for seed in range(5)]
        print(f"  {name:26s} {int(np.median(counts)):5d}")
