"""Results folders with known answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.lab.claims.questions import find_question
from backsweep.lab.studies.tabular.learner import METHODS, Setting
from backsweep.lab.studies.tabular.study import COMPARED, DIFFUSIONS, INITIALS, moments, settings_for


def write_run(
    root: Path,
    task: str,
    method: str,
    seed: int,
    final: float,
    *,
    evaluations: int = 10,
    torn: bool = False,
    finished: bool = True,
    graph: dict[str, int] | None = None,
    last_step: int = 1000,
    exact: bool = False,
    probe_q: float = 0.0,
    curve: Sequence[float] | None = None,
    **config: Any,
) -> Path:
    """Write a training run whose score rises in a straight line to `final`, or is `curve`."""
    if curve is not None:
        evaluations = len(curve)
    env = task if task.endswith("-v1") else None
    settings = {"task": None if env else task, "env": env, "method": method, "steps": 1000, "settings": "paper"}
    settings |= {"exact": exact, "task_options": {}, "ratio": 0.25, "diffusion": 0.5, **config}
    key = "-".join(f"{name}{value}" for name, value in sorted(config.items()))
    if len(key) > 100:  # many file systems end at 255
        key = "-" + hashlib.sha256(key.encode()).hexdigest()[:12]
    folder = root / "runs" / task.replace("/", "-") / f"{method}{key}" / f"seed-{seed}"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**settings, "seed": seed}))
    lines = []
    for place in range(1, evaluations + 1):
        score = final * place / evaluations if curve is None else curve[place - 1]
        record = {"kind": "evaluation", "step": place * last_step // evaluations, "mean_return": score}
        record |= {"normalised_return": score, "exact_normalised": None, "probe_q": probe_q if place == 3 else 0.0}
        record |= {"start_value": 0.0, "discounted_return": 0.0, "value_error": None}
        if exact:
            record |= {"exact_normalised": score, "exact_success": score, "value_error": 100.0 / place}
        lines.append(json.dumps({"kind": "training", "step": record["step"]}, separators=(",", ":")))
        if graph is not None:
            replay = {"kind": "replay", "step": record["step"], "nbytes": 1, "statistics": graph}
            lines.append(json.dumps(replay, separators=(",", ":")))
        lines.append(json.dumps(record, separators=(",", ":")))
    text = "\n".join(lines) + "\n"
    (folder / "records.jsonl").write_text(text + ('{"kind":"evaluation","step":99' if torn else ""))
    if finished:
        (folder / "finished.json").write_text("{}")
    return folder


def write_straight_runs(root: Path, finals: dict[str, float], settings: str = "ours", **options: Any) -> None:
    """Write runs on two tasks: each method reaches its share of episodes in a straight line of 10 evaluations.

    With our settings they are runs of G1, with the options that it gives its methods.
    """
    given = {variant.label: variant.options for variant in find_question("G1").variants} if settings == "ours" else {}
    for task in ("minigrid/doorkey", "minigrid/unlock"):
        for method, final in finals.items():
            for seed in range(100, 103):
                config = {**given.get(method, {}), "exact": True, **options}
                write_run(root, task, method, seed, final, settings=settings, **config)


def write_chain(root: Path, solved: dict[str, float], sets: int = 12) -> None:
    """Write tabular records in which each method solves the chain after about so many backups."""
    folder = root / "tabular"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for seed in range(100, 100 + sets):
        lines = []
        for initial in INITIALS:
            for method in METHODS:
                for diffusion in DIFFUSIONS if method == "ebu" else (0.5,):
                    at = int(solved.get(method, 9e9) * generator.uniform(0.97, 1.03))
                    setting = Setting(method=method, data_seed=seed, initial=initial, diffusion=diffusion)
                    lines.append(_chain_line(setting, at))
        (folder / f"seed-{seed}.jsonl").write_text("\n".join(lines) + "\n")


def write_planned_chain(root: Path, solved: dict[str, float], sets: int = 12) -> None:
    """Write records of graph values and TER on the chain, 64 transitions per backup, with every target table."""
    folder = root / "tabular-graph"
    folder.mkdir(parents=True)
    for seed in range(100, 100 + sets):
        settings = settings_for(seed, COMPARED, batches=(64,))
        lines = [_chain_line(setting, int(solved[setting.method])) for setting in settings]
        (folder / f"seed-{seed}.jsonl").write_text("\n".join(lines) + "\n")


def _chain_line(setting: Setting, at: int) -> str:
    error = [max(0.0, 0.8 * (1 - moment / max(at, 1))) for moment in moments(setting.backups)]
    end = {"solved_at": at if at <= setting.backups else None, "lost": 0, "solved": True}
    return json.dumps({"kind": "tabular", **setting.to_json(), **end, "error": error, "right": error})
