"""Double DQN with graph values, all in one file to copy and change.

python examples/dqn_single_file.py --env CartPole-v1 --steps 20000 --seed 1
"""

from __future__ import annotations

import argparse
import copy

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from backsweep import GraphValues, Prioritized, Replay

parser = argparse.ArgumentParser()
parser.add_argument("--env", default="CartPole-v1")
parser.add_argument("--steps", type=int, default=12_000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--num-envs", type=int, default=2)
parser.add_argument("--capacity", type=int, default=100_000)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--learning-rate", type=float, default=3e-4)
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--warmup", type=int, default=500)
parser.add_argument("--epsilon-steps", type=int, default=6_000)
parser.add_argument("--target-interval", type=int, default=500)
parser.add_argument("--reward-scale", type=float, default=0.01, help="brings an episode's return to about 1")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
flat = gym.wrappers.FlattenObservation  # one vector, whatever the observations are; numbers of states become one-hot
try:
    envs = gym.make_vec(args.env, args.num_envs, vectorization_mode="sync", wrappers=[flat])
except NotImplementedError:
    parser.error(f"--env must have observations of numbers, {args.env} has others (MiniGrid: text); wrap it")
if not isinstance(envs.single_action_space, gym.spaces.Discrete) or envs.single_action_space.start:
    parser.error(f"--env must have discrete actions from 0 on, {args.env} has {envs.single_action_space}")
num_actions, (size,) = int(envs.single_action_space.n), envs.single_observation_space.shape
q_net = nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, num_actions))
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=args.learning_rate)
replay = Replay.for_envs(envs, args.capacity, Prioritized(), values=GraphValues(), gamma=args.gamma, seed=args.seed)


@torch.no_grad()
def q_values(net: nn.Module, observations: np.ndarray) -> torch.Tensor:
    return net(torch.as_tensor(observations, dtype=torch.float32))


def update() -> float:
    batch = replay.sample(args.batch_size).to_torch()
    best = q_values(q_net, batch.next_observation).argmax(dim=1, keepdim=True)
    following = q_values(target_net, batch.next_observation).gather(1, best).squeeze(1)
    target = batch.reward + batch.discount * following
    target = torch.where(torch.isnan(batch.target), target, batch.target)
    value = q_net(batch.observation.float()).gather(1, batch.action.reshape(-1, 1)).squeeze(1)
    loss = (batch.weight * nn.functional.smooth_l1_loss(value, target, reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    replay.update_priorities(batch.row, target - value)
    return loss.item()


observations, _ = envs.reset(seed=args.seed)
returns, finished = np.zeros(args.num_envs), []
for step in range(0, args.steps, args.num_envs):
    epsilon = max(0.02, 1 - step / args.epsilon_steps)
    greedy = q_values(q_net, observations).argmax(dim=1).numpy()
    explored = replay.explore(observations, rng.random(args.num_envs))  # random, but rather what is new
    actions = np.where(rng.random(args.num_envs) < epsilon, explored, greedy)
    following, rewards, terminated, truncated, _ = envs.step(actions)
    replay.add(observations, actions, rewards * args.reward_scale, following, terminated, truncated)
    observations = following
    returns += rewards
    for lane in np.flatnonzero(terminated | truncated):
        finished.append(returns[lane])
        returns[lane] = 0
    if step >= args.warmup:
        for _ in range(args.num_envs):
            loss = update()
        if step % args.target_interval < args.num_envs:
            target_net.load_state_dict(q_net.state_dict())
            replay.renew_values(lambda states: q_values(target_net, states))
    if step % 2_000 < args.num_envs and finished:
        print(f"step {step}: mean return of the last 20 episodes {np.mean(finished[-20:]):.1f}", flush=True)
envs.close()
print(f"mean return of the last 20 of {len(finished)} episodes: {np.mean(finished[-20:]):.1f}")
