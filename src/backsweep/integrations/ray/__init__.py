"""backsweep on a Ray cluster: a replay that many collectors fill and learners sample.

shared = SharedReplay(observation_space, action_space, 1_000_000, Prioritized(), journal="/shared/replay")
writer = shared.writer(num_envs=8)         # in each collector; then writer.add(...) as Replay.add
for batch in shared.batches(256): ...      # in the learner; then shared.update_priorities(batch.row, td_error)
"""

try:
    import ray  # noqa: F401
except ImportError as error:
    raise ImportError("backsweep.integrations.ray needs Ray: pip install 'backsweep[ray]'") from error

from backsweep.integrations.ray.limiter import RateLimiter
from backsweep.integrations.ray.shared_replay import SharedReplay
from backsweep.integrations.ray.writer import SharedReplayError, Writer

__all__ = ["RateLimiter", "SharedReplay", "SharedReplayError", "Writer"]
