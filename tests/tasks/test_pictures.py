"""Pictures and the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from backsweep.tasks import TASKS
from backsweep.tasks.cli import add_commands
from backsweep.tasks.pictures import sheet, task_pictures, write_png


def run(*words: str) -> int:
    """Run a command line as the main program does."""
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())
    arguments = parser.parse_args(words)
    status = arguments.run(arguments)
    assert isinstance(status, int)
    return status


def test_png_files_are_read_back_by_others(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (13, 7, 3), dtype=np.uint8)
    write_png(tmp_path / "noise.png", image)
    np.testing.assert_array_equal((imread(tmp_path / "noise.png") * 255).round().astype(np.uint8), image)
    with pytest.raises(ValueError, match="image must be uint8"):
        write_png(tmp_path / "grey.png", image[:, :, 0])


TASK_IDS = ["nchain-20", "minigrid/doorkey", "sokoban/7x7-2", "atari/pong", "minatar/seaquest", "lunarlander"]


@pytest.mark.parametrize("task", TASK_IDS)
def test_show_writes_six_levels(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "levels.png"
    assert run("tasks", "show", task, "--out", str(path)) == 0
    assert capsys.readouterr().out.strip() == str(path)
    pictures = task_pictures(task)
    assert len(pictures) == 6
    assert len({picture.tobytes() for picture in pictures}) > 1
    read = (imread(path) * 255).round().astype(np.uint8)
    np.testing.assert_array_equal(read, sheet(pictures))


def test_show_names_its_file_after_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("tasks", "show", "minigrid/unlock", "--levels", "2", "--seed", "3") == 0
    assert (tmp_path / "minigrid-unlock.png").exists()
    assert "minigrid-unlock.png" in capsys.readouterr().out
    with pytest.raises(ValueError, match="did you mean 'minigrid/unlock'"):
        run("tasks", "show", "minigrid/unlok")


def test_the_list_names_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tasks") == 0
    printed = capsys.readouterr().out
    for task in TASKS:
        assert f"\n{task} " in printed
