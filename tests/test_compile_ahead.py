"""`backsweep compile` uses everything once, in this process or in others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from backsweep import compile_ahead
from backsweep.cli import main


def test_areas_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--here", "replay", "tasks"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].strip() for line in told[:2]] == ["replay", "tasks"]
    assert told[2].startswith("done after")


FIRST_USE = """
import sys
import gymnasium as gym
import numpy as np
from backsweep import Mixture, Prioritized, Replay, Topological
from backsweep.compile_ahead import use_replay

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("backsweep")]
    kernels = {id(each): each for module in modules for each in vars(module).values() if hasattr(each, "signatures")}
    return {(each.py_func.__name__, str(each.signatures)) for each in kernels.values()}

use_replay()
before = compiled()
space = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8)
replay = Replay(space, gym.spaces.Discrete(7), 1_000, Mixture([(0.5, Topological()), (0.5, Prioritized())]))
images = np.random.default_rng(0).integers(0, 256, (101, 40, 40, 3), np.uint8)
for step in range(100):
    replay.add(images[step], step % 7, 0.0, images[step + 1], step % 50 == 49, False)
batch = replay.sample(64)
replay.update_priorities(batch.row, np.ones(64))
assert len(before) > 20
print(sorted(name for name, _ in compiled() - before))
"""


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_nothing_is_left_to_compile_for_a_first_batch() -> None:
    """A wheel has the kernels that `use_replay` compiles, and a newcomer should wait for no others."""
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_runs_that_are_trained_may_share_a_fleet() -> None:
    fleet = pytest.importorskip("backsweep.agent.fleet.fleet")
    fleet.check_same(list(compile_ahead.short_runs().values()))


def test_areas_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "tasks"]) == 0
    assert "  tasks: " in capsys.readouterr().out


def test_no_more_areas_at_a_time_than_cores(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    going: list[str] = []

    class Process:
        returncode = 0

        def __init__(self, command: list[str], **options: object) -> None:
            assert not going, "there is one core"
            going.append(command[-1])

        def poll(self) -> int:
            going.clear()
            return 0

    monkeypatch.setattr(compile_ahead.subprocess, "Popen", Process)
    monkeypatch.setattr(compile_ahead, "usable_cores", lambda: 1)
    monkeypatch.setattr(compile_ahead, "PATIENCE", 0)
    assert main(["compile", "tasks", "replay"]) == 0
    told = capsys.readouterr().out
    assert told.index("  tasks: ") < told.index("  replay: ")


def test_a_part_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compile_ahead.sys, "executable", "false")  # a program that fails, whatever it is told
    assert main(["compile", "replay"]) == 1
    found = capsys.readouterr()
    assert "replay failed; 'backsweep compile --here replay' shows how" in found.err
    assert "failed after" in found.out


def test_unknown_areas_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "nonsense"]) == 2
    assert "areas must be of fleets, replay, tasks, training, got 'nonsense'" in capsys.readouterr().err


def test_without_torch_training_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used = []
    monkeypatch.setattr(
        compile_ahead, "AREAS", {name: lambda name=name: used.append(name) for name in compile_ahead.AREAS}
    )
    monkeypatch.setattr(compile_ahead.importlib.util, "find_spec", lambda name: None)
    assert main(["compile", "--here"]) == 0
    assert used == ["replay", "tasks"]
    assert main(["compile", "--here", "training"]) == 2
    assert "training needs torch" in capsys.readouterr().err
