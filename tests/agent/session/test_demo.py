"""The demonstration, with shorter runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from backsweep import demo as demonstration
from backsweep.agent.session import demo, demo_work
from backsweep.jit.compilation import interpreted, is_compiled


def test_the_demonstration_ends_with_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SEEDS", (0,))
    monkeypatch.setattr(demo, "REPORT_EVERY", 0.2)
    monkeypatch.setattr(demo, "is_compiled", lambda kernel: False)
    demo.run(tmp_path, steps=240)
    output = capsys.readouterr().out
    assert "  starting\n" in output
    assert "uniform       not yet" in output
    assert "backsweep train minigrid/doorkey" in output
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_nothing_is_compiled_that_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[Any] = []
    pool = SimpleNamespace(submit=lambda *call: submitted.append(call) or SimpleNamespace(result=lambda: None))
    monkeypatch.setattr(demo, "is_compiled", lambda kernel: kernel != "add_arguments")
    demo.compile_kernels(cast(Any, pool))
    assert [call[1] for call in submitted] == ["compile_learning", "compile_adding"]
    submitted.clear()
    monkeypatch.setattr(demo, "is_compiled", lambda kernel: True)
    demo.compile_kernels(cast(Any, pool))
    assert not submitted


def test_what_is_compiled_ahead_ends_with_the_kernels_that_tell() -> None:
    demo_work.compile_learning()
    demo_work.compile_adding()
    assert all(map(is_compiled, demo.COMPILED.values())) or interpreted()


def test_only_the_workers_of_the_demo_import_torch() -> None:
    program = "import sys; import backsweep.agent.session.demo; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("workers", [1, 2, 4, 9])
def test_every_run_has_a_worker(workers: int) -> None:
    runs = [(method, seed) for method in demo.ORDER for seed in demo.SEEDS]
    shares = demo.divided(runs, workers)
    assert [run for share in shares for run in share] == runs
    sizes = [len(share) for share in shares]
    assert len(sizes) == workers
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


def test_all_methods_have_the_same_settings() -> None:
    own = ("method", "eta", "explore")  # which belong to a method
    configs = [demo_work.demo_config(method, 0, demo.STEPS).to_json() for method in demo.METHODS]
    plain = [{name: value for name, value in config.items() if name not in own} for config in configs]
    assert plain[0] == plain[1] == plain[2]
    assert set(demo.ORDER) == set(demo.METHODS)


def test_how_far_the_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = {"graph-0": [(10, 0.2), (20, 0.95)], "ter-0": [(10, 0.0)], "uer-0": [(10, 0.5)]}
    monkeypatch.setattr(demo, "curve_of", lambda folder: curves[folder.name])
    shares = [[("graph", 0), ("ter", 0)], [("uer", 0)]]
    assert demo.so_far(shares, tmp_path) == "step     10; solved now: graph values 1 of 1, TER 0 of 1, uniform 0 of 1"


def test_solved_means_from_there_on() -> None:
    assert demo.solved_at([(10, 0.95), (20, 0.5), (30, 0.9), (40, 1.0)]) == "30"
    assert demo.solved_at([(10, 1.0), (20, 0.89)]) == "not yet"


def test_planning_gives_value_to_states_far_from_the_goal() -> None:
    before, after, distance = demo_work.planned_walk()
    far = distance > 3
    assert far.any()
    near = before[distance == 1].max()
    assert np.median(after[far]) > np.median(before[far])
    assert after[far].max() < after[distance == 1].max() <= near + 1e-6


def test_the_order_of_updates_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demonstration.show_order(tmp_path)
    assert "which states each batch" in capsys.readouterr().out
    assert (tmp_path / "sweep.png").stat().st_size > 10_000
