"""Checkpoints and agents with good checksums and contents that no run writes are refused before anything uses them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from backsweep.agent import RunError, resume
from backsweep.agent.session import checkpoint
from backsweep.agent.session.folder import read_config
from crafted_runs import change_snapshot, good_run, in_time, rounds, stopping_after

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for kind in ("grid", "chain", "fleet", "backward"):
        good_run(folder / kind, kind)
    return folder


def copy_of(good: Path, kind: str, target: Path) -> Path:
    shutil.copytree(good / kind, target)
    return target


def refused(folder: Path, match: str) -> None:
    with in_time(), stopping_after(3), pytest.raises(RunError, match=match):
        resume(folder, quiet=True)


def put(name: str, place: Any, value: Any) -> Change:
    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def replace(name: str, how: Callable[[Any], Any]) -> Change:
    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        arrays[name] = how(arrays[name])

    return change


def set_state(name: str, value: Any) -> Change:
    return lambda _, metadata: metadata[checkpoint.RUNS][0]["state"].update({name: value})


def same_name(_: dict[str, Any], metadata: dict[str, Any]) -> None:
    first, second = metadata[checkpoint.RUNS]
    second["name"] = first["name"]


STATES: dict[str, tuple[str, Change, str]] = {
    "agent outside of the grid": ("grid", put("lane0/envs/lanes", (0, 0), 10**6), "columns of agents go from"),
    "no walls": ("grid", put("lane0/envs/cells", 0, 0), "not surrounded by walls"),
    "another image": ("grid", replace("lane0/observations", lambda array: array[:, :4]), "observations is uint8"),
    "a state that is none": ("chain", put("lane0/observations", 0, 99), "observations go from 99"),
    "other returns": ("chain", replace("lane0/returns", lambda array: array[:0]), "returns is float64 of shape"),
    "targets": ("backward", replace("lane0/backward/targets", lambda array: array + np.nan), "hold NaN|cannot be used"),
    "networks of integers": (
        "chain",
        replace("learner/online", lambda array: array.astype(np.int64)),
        "expected floats",
    ),
    "NaN": ("chain", put("learner/target", (0, 3), np.nan), "target holds NaN or infinity"),
    "updates": ("chain", lambda _, metadata: metadata["learner"].update(updates="x"), "updates is 'x'"),
    "step": ("chain", lambda _, metadata: metadata.update(step=-1), "-1 is not a number of steps"),
    "position": ("chain", lambda _, metadata: metadata.update(positions=[-1], records=[None]), "-1 is not a number"),
    "episodes": ("chain", set_state("episodes", -1), "number of episodes"),
    "scale": ("chain", set_state("reward_scale", 0), "scale of rewards"),
    "returns": ("chain", set_state("finished_returns", ["x"]), "returns of episodes"),
    "explorer": (
        "chain",
        set_state("explorer", {"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}),
        "cannot be",
    ),
    "a run twice": ("fleet", same_name, "runs must have different names"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_made_up_state_is_refused(name: str, good: Path, tmp_path: Path) -> None:
    kind, change, match = STATES[name]
    folder = copy_of(good, kind, tmp_path / "run")
    for slot in (folder / "checkpoints").iterdir():
        change_snapshot(slot / "state", checkpoint.KIND, change)
    refused(folder, match)


def test_a_made_up_configuration_is_refused(good: Path, tmp_path: Path) -> None:
    folder = copy_of(good, "chain", tmp_path / "run")

    def change(_: dict[str, Any], metadata: dict[str, Any]) -> None:
        metadata[checkpoint.RUNS][0]["config"]["encoder"] = -1.5

    for slot in (folder / "checkpoints").iterdir():
        change_snapshot(slot / "state", checkpoint.KIND, change)
    refused(folder, r"checkpoints.*encoder must be one of .*, got -1\.5")
    with pytest.raises(RunError, match="encoder must be one of"):
        checkpoint.newest_replay(folder)


def test_the_replay_of_another_task_is_refused(good: Path, tmp_path: Path) -> None:
    folder = copy_of(good, "grid", tmp_path / "run")
    for slot in (folder / "checkpoints").iterdir():
        shutil.rmtree(slot / "replay-0")
        shutil.copytree(good / "chain" / "checkpoints" / "a" / "replay-0", slot / "replay-0")
        digest = xxhash.xxh3_128_hexdigest((slot / "replay-0" / "manifest.json").read_bytes())
        change_snapshot(slot / "state", checkpoint.KIND, lambda _, metadata: metadata.update(replays=[digest]))  # noqa: B023
    refused(folder, "its replay has .* and the run needs")


def test_a_pipe_in_a_checkpoint_is_not_waited_for(good: Path, tmp_path: Path) -> None:
    folder = copy_of(good, "chain", tmp_path / "run")
    for slot in (folder / "checkpoints").iterdir():
        (slot / "replay-0" / "manifest.json").unlink()
        os.mkfifo(slot / "replay-0" / "manifest.json")
    refused(folder, "no checkpoint can be used")
    with in_time(), pytest.raises(RunError):
        checkpoint.newest_replay(folder)


def test_an_agent_that_is_no_network_is_refused(good: Path, tmp_path: Path) -> None:
    for number, change in enumerate(
        [
            replace("online", lambda array: array.astype(np.int32)),
            lambda _, metadata: metadata.update(reward_scale=0),
            lambda _, metadata: metadata.update(step=-3),
        ]
    ):
        folder = copy_of(good, "chain", tmp_path / f"{number}")
        change_snapshot(folder / "agent", checkpoint.AGENT_KIND, change)
        with pytest.raises(RunError, match="agent cannot be used"):
            checkpoint.load_agent(folder)


def test_a_configuration_of_many_brackets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(RunError, match="nested too deeply"):
        read_config(tmp_path)


def test_a_folder_that_nobody_changed_goes_on(good: Path, tmp_path: Path) -> None:
    """So that the folders above are refused for what was changed."""
    for kind in ("grid", "chain", "fleet", "backward"):
        folder = copy_of(good, kind, tmp_path / kind)
        with in_time(), stopping_after(3):
            assert all(result.error is None for result in resume(folder, quiet=True))


def test_random_changes(tmp_path: Path) -> None:
    assert rounds(random.Random(5), tmp_path, 1) > 0
