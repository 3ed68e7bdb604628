"""The command line, from an empty folder to an agent on film."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from backsweep.agent.session.checkpoint import newest_replay
from backsweep.agent.session.cli import parse_training
from backsweep.cli import main
from trainer_helpers import command, comparable_records

QUICK = ["--steps", "1_200", "--warmup-steps", "400", "--evaluation-episodes", "5", "--probe-size", "16"]


def test_from_an_empty_folder_to_an_agent_on_film(tmp_path: Path) -> None:
    """Train, be stopped by SIGTERM, resume, evaluate, watch: each in a process of its own."""
    started = subprocess.Popen(
        [sys.executable, "-m", "backsweep.cli", "train", "nchain-10", "--method", "ter", "--steps", "200_000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = tmp_path / "runs" / "nchain-10" / "ter-seed0"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (run / "records.jsonl").exists():
        time.sleep(0.05)
    time.sleep(1)
    started.send_signal(signal.SIGTERM)
    output, errors = started.communicate(timeout=120)
    assert started.returncode == 128 + signal.SIGTERM, errors
    assert "run folder: runs/nchain-10/ter-seed0" in output
    assert re.search(r"stopped at step [\d,]+; 'backsweep resume runs/nchain-10/ter-seed0' resumes it", output)

    config = json.loads((run / "config.json").read_text())
    assert (config["task"], config["method"], config["seed"], config["batch_size"]) == ("nchain-10", "ter", 0, 64)
    assert {"python", "versions", "system", "cores"} <= set(json.loads((run / "machine.json").read_text()))

    resumed = subprocess.Popen([sys.executable, "-m", "backsweep.cli", "resume", str(run)], cwd=tmp_path)
    time.sleep(1)
    resumed.kill()
    resumed.wait()
    assert main(["evaluate", str(run)]) == 0
    assert main(["watch", str(run), "--out", str(tmp_path / "episode.gif")]) == 0
    with Image.open(tmp_path / "episode.gif") as film:
        assert film.n_frames > 5


def test_a_closed_terminal_stops_training_with_a_checkpoint(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "backsweep.cli", "train", "nchain-10", "--steps", "200_000", "--folder", "run"],
        cwd=tmp_path,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    records = tmp_path / "run" / "records.jsonl"
    while not (records.exists() and records.stat().st_size):
        assert started.poll() is None
        assert os.read(screen, 10_000)
    started.send_signal(signal.SIGHUP)
    os.close(screen)  # what is still written there is an error
    assert started.wait(120) == 128 + signal.SIGHUP
    last = json.loads((tmp_path / "run" / "sessions.jsonl").read_text().splitlines()[-1])
    assert last["event"] == "stopped"
    assert newest_replay(tmp_path / "run").step == last["step"]


def test_two_processes_give_the_same_records(tmp_path: Path) -> None:
    for name in ("first", "second"):
        done = command("train", "nchain-10", "--method", "per", *QUICK, "--folder", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "finished at step 1,200" in done.stdout
    records = comparable_records(tmp_path / "first")
    assert records == comparable_records(tmp_path / "second")
    assert {record["kind"] for record in records} == {"evaluation", "training", "replay"}


def test_evaluate_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    assert main(["train", "nchain-10", "--method", "uer", *QUICK, "--folder", folder, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["evaluate", folder, "--json", "--episodes", "7", "--random-chance", "0"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["kind"], record["episodes"], record["step"]) == ("evaluation", 7, 1200)
    assert main(["resume", folder]) == 2
    assert "already finished" in capsys.readouterr().err
    assert main(["train", "nchain-10", *QUICK, "--folder", folder]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_every_knob_is_an_option() -> None:
    line = (
        "minigrid/doorkey --method ebu-mixed --settings released --eta 0.25 --seed 3 --linear 64 32 "
        "--task-options random_action_chance 0.1 goals_terminate False --no-ebu-double --per-clip None "
        "--threads 2 --checkpoint-interval 10"
    )
    config, session = parse_training(line.split())
    assert config.eta == 0.25
    assert config.linear == (64, 32)
    assert config.task_options == {"random_action_chance": 0.1, "goals_terminate": False}
    assert config.per_clip is None
    assert config.bootstrap_at_timeout is False  # from the released code
    assert config.steps == 6_000_000  # from the task
    assert (session.threads, session.checkpoint_interval) == (2, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "name a task first"),
        (["train", "nchain-10", "--method", "tre"], "did you mean 'ter'"),
        (["train", "minigrid/dorkey"], "did you mean 'minigrid/doorkey'? (or give a Gymnasium id, such as"),
        (["train", "CartPole"], "unknown task 'CartPole'; did you mean the Gymnasium id 'CartPole-v1'?\n"),
        (["train", "nchain-10", "--env", "CartPole-v1"], "not both"),
        (["train", "nchain-10", "--discount", "2"], "discount must be in 0..1"),
        (["train", "--env", "Nonsense-v9", "--folder", "x"], "cannot make 'Nonsense-v9'"),
        (["train", "--env", "Pendulum-v1", "--folder", "x"], "Discrete action space"),
        (["train", "nchain-10", "--task-options", "length", "1", "--folder", "x"], "length must be"),
        (["train", "nchain-10", "--task-options", "lenght", "9", "--folder", "x"], "did you mean 'length'"),
        (["train", "nchain-10", "--folder", "/proc/nothing/here"], "cannot be written"),
        (["resume", "nowhere"], "there is no folder nowhere"),
        (["evaluate", "."], "holds no run: there is no config.json in it"),
        (["watch", __file__], "holds no run: it is not a folder"),
        (["train", "Nonsense-v9", "--folder", "x"], "cannot make 'Nonsense-v9'"),
        (["train", "CartPole-v1", "--env", "CartPole-v1"], "not both"),
        (["inspect", "no_such_module:Keys-v0"], "run `python -m backsweep` in its folder"),
        (["inspect", "minigrid/dorkey"], "did you mean 'minigrid/doorkey'"),
        (["inspect", "CartPol"], "env is not a task (did you mean the Gymnasium id 'CartPole-v1'? "),
        (["inspect", "CartPole-v9"], "Gymnasium cannot make 'CartPole-v9'"),
        (["experiment", "pack", "nowhere"], "there is no folder nowhere"),
        (["experiment", "pack", "."], "no runs in ."),
        (["experiment", "run", "C3", "--tasks", "minigrid/dorkey"], "no task 'minigrid/dorkey' in these questions"),
        ([], "usage: backsweep"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x" / "config.json").exists()


def test_a_gymnasium_id_may_stand_in_a_tasks_place() -> None:
    config, _ = parse_training(["CartPole-v1", "--steps", "2_000", "--method", "per"])
    assert (config.task, config.env, config.steps, config.method) == (None, "CartPole-v1", 2_000, "per")
    config, _ = parse_training(["--seed=3", "--env", "gymnasium:CartPole-v1"])
    assert (config.env, config.seed) == ("gymnasium:CartPole-v1", 3)


def test_the_help_without_a_task_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    words = capsys.readouterr().out
    assert "backsweep train CartPole-v1" in words
    assert len(words.splitlines()) < 30
    options = re.findall(r"^  (--[a-z-]+)", words, re.MULTILINE)
    with pytest.raises(SystemExit):
        main(["train", "nchain-10", "--help"])
    whole = capsys.readouterr().out
    assert [option for option in options if option not in whole] == []


def test_steps_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "nchain-10", "--steps", "many"])
    assert "argument --steps: must be a whole number, got 'many'" in capsys.readouterr().err


def test_unknown_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["train", "nchain-10", "--etta", "0.3"])
    assert refused.value.code == 2
    assert "--eta" in capsys.readouterr().err


def test_a_damaged_agent_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert main(["train", "nchain-10", *QUICK, "--folder", str(folder), "--quiet"]) == 0
    (folder / "agent" / "manifest.json").write_text("nonsense")
    assert main(["evaluate", str(folder)]) == 2
    assert "manifest.json" in capsys.readouterr().err
    (folder / "config.json").write_text("nonsense")
    assert main(["watch", str(folder)]) == 2
    assert "config.json cannot be read" in capsys.readouterr().err
