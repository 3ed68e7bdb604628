"""Train DreamerV2 on a MiniGrid task, for question C17.

    python -m benchmarks.world_model minigrid/doorkey 100 200000 made 20       # seed 100, at most 20 minutes

Needs sheeprl in an environment of its own (its packages do not fit those of constraints.txt):

    pip install torch numpy numba gymnasium lightning 'hydra-core>=1.3.2,<1.4' torchmetrics rich python-dotenv \
        opencv-python-headless
    pip install --no-deps sheeprl==0.8.4 && pip install .

Writes OUT/minigrid-doorkey.seed-0100.jsonl as it goes: what the run is, an evaluation every 25,000 steps, and its end.
A run that is killed keeps what it has written. Compressed and put into results/world-model, the files answer C17.

An update is recorded as one CUDA graph. If that fails, the run starts again without.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

import torch

from benchmarks.world_model import waitless
from benchmarks.world_model.settings import Settings
from benchmarks.world_model.training import UPDATES, Run

BEGAN, UPDATE = "WORLD_MODEL_BEGAN", "WORLD_MODEL_UPDATE"
"""What a run that starts again takes over from its first start, in the environment."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.world_model", description="DreamerV2 on a MiniGrid task")
    made.add_argument("task")
    made.add_argument("seed", type=int)
    made.add_argument("steps", type=int)
    made.add_argument("out", type=Path)
    made.add_argument("minutes", type=float, help="stop by then, also before the last step")
    made.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--update", choices=UPDATES, help="how updates are made; default: recorded, or eager")
    made.add_argument("--threads", type=int, default=1)
    for name in ("prefill", "interval", "episodes", "pretrain", "num_envs", "batch", "length", "horizon"):
        made.add_argument(f"--{name.replace('_', '-')}", type=int)
    made.add_argument("--ratio", type=float)
    made.add_argument("--size", choices=("published", "small", "tiny"))
    return made


def settings_of(given: argparse.Namespace) -> Settings:
    """Return the settings of a command line; what is not given has its default."""
    names = [name for name in Settings.__dataclass_fields__ if getattr(given, name, None) is not None]
    return Settings(**{name: getattr(given, name) for name in names})


def main() -> int:
    """Run it; if updates cannot be recorded, again without."""
    given = parser().parse_args()
    settings = settings_of(given)
    torch.set_num_threads(given.threads)
    began = float(os.environ.setdefault(BEGAN, str(time.time())))
    deadline = time.monotonic() + given.minutes * 60 - (time.time() - began)
    how = given.update or os.environ.get(UPDATE, "recorded" if given.device == "cuda" else "eager")
    given.out.mkdir(parents=True, exist_ok=True)
    out = given.out / f"{settings.task.replace('/', '-')}.seed-{settings.seed:04d}.jsonl"
    out.unlink(missing_ok=True)
    waitless.install()
    try:
        Run(settings, out, given.device, how, deadline).go()
    except Exception:
        if given.update is not None or how != "recorded":
            raise
        traceback.print_exc()
        print("updates cannot be recorded here; the run starts again without that", flush=True)
        os.environ[UPDATE] = "eager"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
