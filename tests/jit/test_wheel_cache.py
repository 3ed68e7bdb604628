"""Kernels that come with a wheel are used without compiling, and only where they fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backsweep.jit import wheel_cache
from backsweep.jit.compilation import interpreted

pytestmark = [
    pytest.mark.skipif(interpreted(), reason="nothing is compiled"),
    pytest.mark.skipif(wheel_cache.baseline() is None, reason="no wheels for this machine"),
]

PROGRAM = """
import json, sys
from pathlib import Path
from numba.core import event
from backsweep.jit import kernel_cache, wheel_cache
mode, folder = sys.argv[1], Path(sys.argv[2])
wheel_cache.FOLDER = folder
if mode == "ship":
    wheel_cache.ship_into(folder)
if mode == "changed":
    kernel_cache.contents_digest = lambda: "another"
if mode == "old":
    wheel_cache._runs_here = lambda: False
if mode == "damaged":
    for file in folder.glob("*.nb?"):
        file.write_bytes(file.read_bytes()[:-9])
from backsweep.samplers import sum_tree_kernels
from backsweep.samplers.sum_tree import SumTree
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__name__)
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
tree = SumTree(100, with_minima=True)
sum_tree_kernels.set_range(90, 110, 100, 0.3, tree.addresses)
print(json.dumps({"compiled": compiled, "total": tree.total, "leaves": tree.leaves(slice(None)).tolist()}))
"""


def start(mode: str, folder: Path, cache: Path) -> dict[str, Any]:
    environment = {
        **(wheel_cache.baseline_environment() if mode == "ship" else os.environ),
        "NUMBA_CACHE_DIR": str(cache),
    }
    command = [sys.executable, "-c", PROGRAM, mode, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_shipped_kernels_are_used_where_they_fit(tmp_path: Path) -> None:
    folder = tmp_path / "shipped"
    made = start("ship", folder, tmp_path / "cache")
    assert "set_range" in made["compiled"]
    assert any(folder.glob("*set_range*.nbi"))
    assert not any(folder.glob("*refresh_node*")), "what only kernels call is part of them"
    used = start("use", folder, tmp_path / "empty")
    assert used["compiled"] == []
    assert (used["total"], used["leaves"]) == (made["total"], made["leaves"])
    for mode in ("changed", "old", "damaged"):
        other = start(mode, folder, tmp_path / mode)
        assert "set_range" in other["compiled"], mode
        assert other["leaves"] == made["leaves"]


def test_a_process_that_ships_kernels_reads_none_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that is written lies in the package, where kernels are looked for: reading them back broke wheels."""
    looked = []

    def look(function: object, digest: str, folder: Path) -> object:
        looked.append(folder)
        raise OSError

    monkeypatch.setattr(wheel_cache, "FOLDER", tmp_path)
    monkeypatch.setattr(wheel_cache, "_runs_here", lambda: True)
    monkeypatch.setattr(wheel_cache, "_file_of", look)
    monkeypatch.setattr(wheel_cache, "_into", [])
    assert wheel_cache.load(None, "signature", None, "digest") is None
    assert looked == [tmp_path]
    wheel_cache.ship_into(tmp_path)
    assert wheel_cache.load(None, "signature", None, "digest") is None
    assert looked == [tmp_path]
