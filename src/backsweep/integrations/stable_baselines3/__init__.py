"""backsweep in Stable-Baselines3: replay buffers, importance weights, priorities and graph values.

from backsweep import Prioritized
from backsweep.integrations.stable_baselines3 import ReplayBuffer, ReplayCallback

model = DQN("MlpPolicy", env, replay_buffer_class=ReplayBuffer, replay_buffer_kwargs={"sampler": Prioritized()})
model.learn(100_000, callback=ReplayCallback())
"""

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise ImportError(
        "backsweep.integrations.stable_baselines3 needs Stable-Baselines3: pip install 'backsweep[stable-baselines3]'"
    ) from error

from backsweep.integrations.stable_baselines3.buffers import DictReplayBuffer, ReplayBuffer
from backsweep.integrations.stable_baselines3.callback import ReplayCallback
from backsweep.integrations.stable_baselines3.topological_dqn import TopologicalDQN

__all__ = ["DictReplayBuffer", "ReplayBuffer", "ReplayCallback", "TopologicalDQN"]
