"""The first thousand rows of every sampler for one seed on a fixed stream.

Run as a script, this writes `traces.json` anew: do so only when rows are meant to change, and say so in the changelog,
because a user's runs change with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium as gym
import numpy as np

from backsweep import (
    EpisodicBackward,
    Mixture,
    Prioritized,
    PseudoTerminals,
    Replay,
    Topological,
    Uniform,
)
from backsweep.samplers import Sampler

FILE = Path(__file__).with_name("traces.json")
ROWS = 1000

SAMPLERS: dict[str, Sampler] = {
    "uniform": Uniform(),
    "prioritized": Prioritized(),
    "prioritized, stratified": Prioritized(stratified=True, normalise="batch", beta_rows=500),
    "episodic backward": EpisodicBackward(),
    "episodic backward, ended by itself": EpisodicBackward(timeouts=False, running=False),
    "topological": Topological(predecessors=3),
    "topological, single": Topological(roots=1, predecessors=1),
    "topological, separate trees by visits": Topological(predecessors=3, trees="separate", draw="visits"),
    "topological, pseudo-terminals": Topological(predecessors=3, start=PseudoTerminals(kappa=0.5)),
    "topological, no stitching": Topological(predecessors=3, stitch=False),
    "topological, shuffled": Topological(predecessors=3, shuffle=50),
    "mixture": Mixture([(0.5, Topological(predecessors=3)), (0.3, Prioritized()), (0.2, EpisodicBackward())]),
}


def stream(calls: int) -> list[tuple[np.ndarray, ...]]:
    """Two lanes that walk about a ring of 40 states by the digits of a linear congruence; no library draws here."""
    word = 12345
    places = [3, 17]
    steps = []
    for _ in range(calls):
        lanes = []
        for lane in range(2):
            word = (word * 6364136223846793005 + 1442695040888963407) % 2**64
            move = (word >> 33) % 5 - 1
            place, target = places[lane], (places[lane] + move) % 40
            terminated, truncated = target in (0, 20) and move != 0, (word >> 40) % 23 == 0
            lanes.append((place, (word >> 50) % 4, float(move), target, terminated, truncated))
            places[lane] = (word >> 20) % 40 if terminated or truncated else target
        steps.append(tuple(np.array(column) for column in zip(*lanes, strict=True)))
    return steps


def trace(sampler: Sampler) -> list[int]:
    """Return the rows that a sampler gives while the ring of 150 rows is written around four times."""
    replay = Replay(gym.spaces.Discrete(40), gym.spaces.Discrete(4), 150, sampler, num_envs=2, seed=2024)
    rows: list[int] = []
    for call, step in enumerate(stream(300)):
        replay.add(*step)
        if call % 3 == 2:
            batch = replay.sample(10)
            rows += batch.row.tolist()
            replay.update_priorities(batch.row, batch.reward)
    return rows[:ROWS]


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(trace(sampler))}" for name, sampler in SAMPLERS.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
