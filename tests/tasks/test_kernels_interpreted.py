"""The kernels without numba and with its bounds checks give what they give compiled."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import hashlib
import warnings
import numpy as np

np.seterr(over="ignore")  # the streams wrap around, which interpreted numpy scalars would warn about
warnings.simplefilter("error")
from backsweep.tasks import exact, make, solve

digest = hashlib.sha256()
for task, options in (
    ("nchain-6", {"random_action_chance": 0.2}),
    ("minigrid/doorkey", {"size": 5, "image_size": 10, "max_steps": 12}),
    ("minigrid/unlock", {"image_size": 10, "max_steps": 12, "random_action_chance": 0.1}),
    ("minigrid/redbluedoors", {"size": 3, "image_size": 10, "max_steps": 12}),
    ("minigrid/lavacrossing-hard", {"size": 7, "image_size": 10, "max_steps": 12}),
    ("sokoban/5x5-1", {"image_size": 10, "max_steps": 12}),
    ("sokoban/6x5-2", {"image_size": 10, "max_steps": 12}),
):
    env = make(task, num_envs=2, seed=1, **options)
    digest.update(env.reset()[0].tobytes())
    generator = np.random.default_rng(0)
    for _ in range(30):
        result = env.step(generator.integers(0, env.single_action_space.n, 2))
        for array in result[:4]:
            digest.update(array.tobytes())
    if task.startswith("sokoban"):
        rows = env.lanes.options.height
        path = solve(env.lanes.fixed[0].reshape(rows, -1), env.lanes.rooms[0].reshape(rows, -1))
        digest.update(b"-" if path is None else path.tobytes())
for task, options in (("nchain-6", {}), ("minigrid/redbluedoors", {"size": 3, "image_size": 8})):
    model = exact(task, random_action_chance=0.1, max_steps=9, **options)
    best = model.optimal_values(0.9)
    digest.update(best.tobytes())
    digest.update(model.policy_values(best, 0.9, 0.05).tobytes())
    digest.update(repr(model.expected_return(best, 0.05)).encode())
    digest.update(model.observations(np.arange(model.num_states)).tobytes())
print(digest.hexdigest())
"""


def start(**variables: str) -> subprocess.Popen[str]:
    """Run the script in a fresh process with only these of numba's variables, and its cache where it was."""
    kept = {name for name in os.environ if not name.startswith("NUMBA_") or name == "NUMBA_CACHE_DIR"}
    environment = {name: os.environ[name] for name in kept}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **variables},
    )


def test_compiled_interpreted_and_bounds_checked_agree() -> None:
    # Code with bounds checks has a folder of its own in the cache, as test_kernel_modes.py shows.
    runs = [start(NUMBA_DISABLE_JIT="1"), start(NUMBA_BOUNDSCHECK="1"), start()]
    printed = []
    for process in runs:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        printed.append(output.strip())
    assert len(set(printed)) == 1
