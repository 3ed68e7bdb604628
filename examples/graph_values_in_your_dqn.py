"""Graph values in your own DQN loop: only the lines marked [+] differ from plain DQN.

The task is FrozenLake without slipping: it has 16 places, so states repeat all the time. Behind each mark
stands what plain DQN has there instead.

Run it: python examples/graph_values_in_your_dqn.py
"""

import copy
import random

import gymnasium as gym
import torch
from torch import nn

from backsweep import GraphValues, Replay  # [+] nothing

STEPS, WARM_UP, UPDATE_INTERVAL, COPY_INTERVAL, BATCH, GAMMA = 4_000, 500, 2, 250, 64, 0.98

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)
env = gym.make("FrozenLake-v1", is_slippery=False)
states, actions = int(env.observation_space.n), int(env.action_space.n)
one_hot = torch.eye(states)
online = nn.Sequential(nn.Linear(states, 64), nn.ReLU(), nn.Linear(64, actions))
frozen = copy.deepcopy(online)
optimiser = torch.optim.Adam(online.parameters(), lr=1e-3)
memory = Replay(  # [+] memory = deque(maxlen=10_000)
    env.observation_space,  # [+]
    env.action_space,  # [+]
    capacity=10_000,  # [+]
    gamma=GAMMA,  # [+]
    values=GraphValues(),  # [+]
)  # [+]


def best_action(state):
    with torch.no_grad():
        return int(online(one_hot[state]).argmax())


def learn():
    batch = memory.sample(BATCH).to_torch()  # [+] batch = stacked(random.sample(memory, BATCH))
    with torch.no_grad():
        after = frozen(one_hot[batch.next_observation]).max(dim=1).values
        target = batch.reward + batch.discount * after
        target = torch.where(batch.target.isnan(), target, batch.target)  # [+] nothing
    value = online(one_hot[batch.observation]).gather(1, batch.action[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(value, target)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


state, _ = env.reset(seed=0)
for step in range(STEPS):
    explore = random.random() < max(0.1, 1 - 2 * step / STEPS)
    action = memory.explore(state, random.random()) if explore else best_action(state)  # [+] random.randrange(actions)
    after, reward, terminated, truncated, _ = env.step(action)
    memory.add(state, action, reward, after, terminated, truncated)  # [+] memory.append((state, action, ...))
    state = env.reset()[0] if terminated or truncated else after
    if step >= WARM_UP and step % UPDATE_INTERVAL == 0:
        learn()
    if step % COPY_INTERVAL == 0:
        frozen.load_state_dict(online.state_dict())
        memory.renew_values(lambda seen: frozen(one_hot[seen]), bounds=(0.0, 1.0))  # [+] nothing

state, _ = env.reset(seed=1)
steps, over = 0, False
while not over:
    state, reward, terminated, truncated, _ = env.step(best_action(state))
    steps, over = steps + 1, terminated or truncated

print("reached the goal" if reward else "did not reach the goal", f"in an episode of {steps} steps")
start = memory.graph.vertex(0)
print("values of the start by action, planned on the graph:", memory.graph.action_values(start).round(3))
print("                             learned by the network:", online(one_hot[0]).detach().numpy().round(3))
