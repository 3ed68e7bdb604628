"""How many updates until a chain of states is solved? A table, offline data, no network.

With a target table, which is copied now and then as deep Q-learning copies its target network, one-step targets move
values one state back for each copy, in any order of the rows. Targets that are planned on the stored graph are
right after the first copy. Without a target table the order of the rows matters too.

Run it: python examples/chain_updates.py
"""

import gymnasium as gym
import numpy as np

from backsweep import EpisodicBackward, GraphValues, Mixture, Prioritized, Replay, Topological, Uniform

LENGTH, BATCH, DISCOUNT, COPY_EVERY = 20, 8, 0.99, 50
METHODS = {
    "uniform": (Uniform(), None),
    "prioritized": (Prioritized(), None),
    "episodic backward": (EpisodicBackward(), None),
    "topological": (Topological(), None),
    "topological + prioritized": (Mixture([(0.5, Topological()), (0.5, Prioritized())]), None),
    "prioritized, graph values": (Prioritized(), GraphValues()),
}


def collect(sampler, values, seed):
    """Fill a replay with a random walk on the chain; only the last state gives a reward, and ends the episode."""
    spaces = gym.spaces.Discrete(LENGTH), gym.spaces.Discrete(2)
    replay = Replay(*spaces, 5_000, sampler, values=values, gamma=DISCOUNT, seed=seed)
    rng = np.random.default_rng(seed)
    state = 0
    for _ in range(5_000):
        action = int(rng.integers(2))
        following = min(state + 1, LENGTH - 1) if action else max(state - 1, 0)
        done = following == LENGTH - 1
        replay.add(state, action, float(done), following, terminated=done, truncated=False)
        state = 0 if done else following
    return replay


def updates_until_solved(replay, copy_every, planned, limit=5_000):
    """Update a table until its best actions lead straight to the goal."""
    q = np.zeros((LENGTH, 2))
    for update in range(1, limit + 1):
        if (update - 1) % copy_every == 0:
            target_q = q.copy()
            if planned:
                replay.renew_values(target_q.__getitem__)  # values of states by the copied table
        batch = replay.sample(BATCH)
        one_step = batch.reward + batch.discount * target_q[batch.next_observation].max(axis=1)
        target = batch.target if planned else one_step
        error = target - q[batch.observation, batch.action]
        q[batch.observation, batch.action] = target
        replay.update_priorities(batch.row, error)
        if (q[: LENGTH - 1, 1] > q[: LENGTH - 1, 0]).all():
            return update
    return limit


if __name__ == "__main__":
    print(f"updates of {BATCH} rows until a chain of {LENGTH} states is solved, median of 5 data sets")
    print(f"  {'':26s} {f'target copied every {COPY_EVERY}':>24s} {'no target table':>17s}")
    for name, (sampler, values) in METHODS.items():
        medians = []
        for copy_every in (COPY_EVERY, 1):
            replays = [collect(sampler, values, seed) for seed in range(5)]
            counts = [updates_until_solved(replay, copy_every, values is not None) for replay in replays]
            medians.append(int(np.median(counts)))
        print(f"  {name:26s} {medians[0]:24,d} {medians[1]:17,d}")
