"""What a sampler of one's own can see of the rows."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from backsweep import Replay
from backsweep.samplers import Experience


def test_rewards_and_ends_by_serial_number() -> None:
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), capacity=4)
    for step in range(7):
        replay.add(step, 0, float(step), step + 1, terminated=step == 4, truncated=step in (4, 5))
    experience = replay.machinery.sampler.experience
    assert isinstance(experience, Experience)
    rows = np.arange(experience.oldest, experience.total)
    assert rows.tolist() == [3, 4, 5, 6]
    assert experience.rewards(rows).tolist() == [3.0, 4.0, 5.0, 6.0]
    assert experience.terminated(rows).tolist() == [False, True, False, False]
    assert experience.truncated(rows).tolist() == [False, True, True, False]
