"""Several environments at once: each lane is its own stream of episodes, and every successor is the true one.

Run it: python examples/vector_environments.py
"""

import gymnasium as gym

from backsweep import Prioritized, Replay

LANES = 8

# Gymnasium's default: an episode's last observation comes with its end, and the next call only resets that lane.
# With autoreset="next_step" the replay skips that call.
envs = gym.make_vec("CartPole-v1", num_envs=LANES)
replay = Replay(
    envs.single_observation_space,
    envs.single_action_space,
    capacity=50_000,
    sampler=Prioritized(),
    num_envs=LANES,
    n_step=3,
    gamma=0.99,
    autoreset="next_step",
)
observations, _ = envs.reset(seed=0)
envs.action_space.seed(0)
for _ in range(500):
    actions = envs.action_space.sample()
    following, rewards, terminated, truncated, _ = envs.step(actions)
    replay.add(observations, actions, rewards, following, terminated, truncated)
    observations = following

batch = replay.sample(32)
stats = replay.stats()
print(f"{stats['rows']:.0f} transitions of {stats['episodes']:.0f} episodes in {LANES} lanes")
print(f"three-step rewards of the first rows: {batch.reward[:8]}")
print(f"discounts of their successors:        {batch.discount[:8].round(3)}")
