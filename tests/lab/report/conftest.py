"""One report from a results folder with known answers, made once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backsweep.lab.records import write_lines
from backsweep.lab.report.answers import Report, make_report
from backsweep.lab.report.report_files import write_report
from backsweep.lab.studies.tabular.learner import METHODS
from result_folders import write_chain, write_run


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_chain(root, {"ter": 30, "ebu": 60, "uer": 400, "per": 300, "ter-shuffled": 300})
    traces = [
        {"kind": "trace", "method": method, "data_seed": 100, "target_every": target, "length": 20, "steps": steps}
        for target in (0, 20)
        for method in METHODS
        # Straight back from the end: solved after 19 backups.
        for steps in [[[state, 0, 0.5] for state in range(18, -1, -1)] + [[3, 1, 0.1]]]
    ]
    write_lines(root / "tabular" / "traces.jsonl.gz", traces)
    for task in ("minigrid/doorkey", "minigrid/unlock"):
        for seed in range(100, 105):
            finals = {"ter": 0.8, "uer": 0.5, "per": 0.5, "ebu": 0.4, "discor": 0.3, "ter-shuffled": 0.6}
            for method, final in finals.items():
                write_run(
                    root,
                    task,
                    method,
                    seed,
                    final + 0.01 * (seed - 100),
                    torn=seed == 104 and method == "ebu",
                    last_step=3_000_000,
                    exact=task == "minigrid/unlock",
                )
    for place, task in enumerate(("sokoban/5x5-1", "sokoban/6x6-1", "sokoban/5x5-2", "sokoban/6x6-2")):
        for seed in range(100, 104):
            noise = 0.001 * (seed % 3)
            graph = {"rows": 1000, "vertices": 200 * (place + 1), "edges": 600}
            write_run(root, task, "ter", seed, 0.6 + 0.05 * place + noise, graph=graph, eta=0.2)
            for method in ("uer", "per", "ebu", "discor"):
                write_run(root, task, method, seed, 0.5 - noise, eta=0.2)
    for seed in range(100, 105):
        # The released code's settings, with which the baselines' memories are smaller (D1).
        for method, final in {"ter": 0.2, "uer": 0.5, "per": 0.5, "ebu": 0.4, "discor": 0.3}.items():
            capacity = 1_000 if method == "ter" else 50
            write_run(root, "minigrid/doorkey", method, seed, final, settings="released", capacity=capacity)
    write_run(root, "minigrid/doorkey", "ter", 100, 0.1, steps=77)
    (root / "broken").mkdir()
    (root / "broken" / "config.json").write_text("{")
    (root / "broken" / "records.jsonl").write_text(json.dumps({"kind": "evaluation"}))
    return root


@pytest.fixture(scope="session")
def report(results: Path) -> Report:
    return make_report(results)


@pytest.fixture(scope="session")
def folder(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(report, out)
    return out
