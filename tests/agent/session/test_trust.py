"""What a run's folder may and may not do, and what is said when something is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from backsweep.agent import RunError, resume, run_config, train, train_fleet
from backsweep.agent.session import checkpoint as checkpoints
from backsweep.agent.session.folder import create_run
from backsweep.agent.session.session import Session
from backsweep.cli import EXTRAS, main
from backsweep.snapshot import read_snapshot, write_snapshot
from trainer_helpers import chain, comparable_records


def stop_at(step: int, patch: pytest.MonkeyPatch, how: type[BaseException] | int) -> None:
    """Let sessions end at a step: by a signal, or by an exception, after which nothing is written any more."""
    look_around = Session._after_turn

    def look_and_stop(self: Session) -> None:
        look_around(self)
        if self.fleet.step >= step:
            if isinstance(how, int):
                signal.raise_signal(how)
            else:
                raise how

    patch.setattr(Session, "_after_turn", look_and_stop)


def killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train with checkpoints at 300 and 600, and a record at 700 that no checkpoint knows of."""
    with monkeypatch.context() as patch:
        stop_at(700, patch, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            train(chain(method="ter"), folder, quiet=True, checkpoint_interval=300)


def test_a_run_resumed_and_stopped_at_once_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(chain(method="ter"), tmp_path / "whole", quiet=True)
    killed(tmp_path / "run", monkeypatch)
    with monkeypatch.context() as patch:
        stop_at(601, patch, signal.SIGTERM)  # before the next record
        (stopped,) = resume(tmp_path / "run", quiet=True, checkpoint_interval=300)
    assert stopped.step < 700
    (result,) = resume(tmp_path / "run", quiet=True)
    assert result.finished
    assert comparable_records(tmp_path / "run") == comparable_records(tmp_path / "whole")


@pytest.mark.parametrize("name", ["records.jsonl", "sessions.jsonl"])
def test_resuming_writes_through_no_link(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    victim = tmp_path / "victim"
    (tmp_path / "run" / name).rename(victim)
    (tmp_path / "run" / name).symlink_to(victim)
    before = victim.read_bytes()
    with pytest.raises(RunError, match="it is a link, and writing would change a file elsewhere"):
        resume(tmp_path / "run", quiet=True)
    assert victim.read_bytes() == before


def rewrite_snapshot(folder: Path, kind: str, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Change the arrays or the metadata of a snapshot, with good checksums."""
    found = read_snapshot(folder, kind=kind, versions={checkpoints.VERSION})
    arrays, metadata = dict(found.arrays), dict(found.metadata)
    change(arrays, metadata)
    shutil.rmtree(folder)
    write_snapshot(folder, arrays, metadata, kind=kind, version=checkpoints.VERSION)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_lies_in_place_of_the_lock_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not another process that trains the run."""
    folder = tmp_path / "run"
    killed(folder, monkeypatch)
    lock = folder / "writer.lock"
    lock.unlink()
    if kind == "link":
        lock.symlink_to(tmp_path / "elsewhere")
    else:
        lock.mkdir()
    with pytest.raises(RunError, match=f"writer.lock: it is a {kind}"):
        resume(folder, quiet=True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("entry", ["positions", checkpoints.RUNS, "learner", "step"])
def test_a_checkpoint_without_an_entry_is_named(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    for slot in (tmp_path / "run" / "checkpoints").iterdir():
        rewrite_snapshot(slot / "state", checkpoints.KIND, lambda arrays, metadata: metadata.pop(entry))
    with pytest.raises(RunError, match=f"checkpoints: the entry '{entry}' is missing"):
        resume(tmp_path / "run", quiet=True)


def test_an_agent_without_an_entry_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    agent = tmp_path / "run" / "agent"
    rewrite_snapshot(agent, checkpoints.AGENT_KIND, lambda arrays, metadata: metadata.update(step=[]))
    with pytest.raises(RunError, match="agent cannot be used"):
        checkpoints.load_agent(tmp_path / "run")
    rewrite_snapshot(agent, checkpoints.AGENT_KIND, lambda arrays, metadata: arrays.pop("online"))
    with pytest.raises(RunError, match="agent: the entry 'online' is missing"):
        checkpoints.load_agent(tmp_path / "run")


@pytest.mark.parametrize("name", ["../victim", "absolute", 3, "link"])
def test_a_checkpoint_cannot_name_a_folder_elsewhere(
    name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(tmp_path / "run", monkeypatch)
    victim = tmp_path / "victim"
    (victim / "agent").mkdir(parents=True)
    (victim / "agent" / "manifest.json").write_text("precious")
    (victim / "records.jsonl").write_text("precious")
    if name == "link":
        (tmp_path / "run" / "link").symlink_to(victim)

    def change(arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        (run,) = metadata[checkpoints.RUNS]
        run["name"] = str(victim) if name == "absolute" else name
        metadata.update(positions=[0], records=[None])

    for slot in (tmp_path / "run" / "checkpoints").iterdir():
        rewrite_snapshot(slot / "state", checkpoints.KIND, change)
    with pytest.raises(RunError, match="a run must be named by a folder inside of"):
        resume(tmp_path / "run", quiet=True)
    assert (victim / "agent" / "manifest.json").read_text() == (victim / "records.jsonl").read_text() == "precious"


def test_records_that_were_lost_cost_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    (_, _, _), (_, older, _) = checkpoints._slots(tmp_path / "run")
    position = json.loads((older / "state" / "manifest.json").read_text())["metadata"]["positions"][0]
    path = tmp_path / "run" / "records.jsonl"
    path.write_bytes(path.read_bytes()[: position + 10])
    (result,) = resume(tmp_path / "run", quiet=True)
    assert result.finished
    train(chain(method="ter"), tmp_path / "whole", quiet=True)
    assert comparable_records(tmp_path / "run") == comparable_records(tmp_path / "whole")


def test_a_changed_record_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    path = tmp_path / "run" / "records.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"step":100', '"step":109', 1))
    with pytest.raises(RunError, match="not what the run wrote"):
        resume(tmp_path / "run", quiet=True)
    path.write_text(text)
    assert resume(tmp_path / "run", quiet=True)[0].finished


def test_a_damaged_agent_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    (tmp_path / "run" / "agent" / "manifest.json").write_text("{}")
    assert resume(tmp_path / "run", quiet=True)[0].finished
    assert main(["evaluate", str(tmp_path / "run"), "--episodes", "2"]) == 0


def test_a_run_without_a_checkpoint_can_be_started_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create_run(Path("run"), chain(method="ter"))
    with pytest.raises(RunError, match=r"no checkpoint yet.*--restart"):
        resume("run", quiet=True)
    with pytest.raises(RunError, match=r"holds a run that stopped before its first checkpoint: choose.*--restart"):
        train(chain(method="ter"), "run", quiet=True)
    for number in (1, 2):
        assert train(chain(method="ter", steps=700), "run", restart=True).finished
        assert f"run.aside-{number}" in capsys.readouterr().out
        assert (tmp_path / f"run.aside-{number}" / "config.json").exists()
        with pytest.raises(
            RunError, match="holds a run, which is finished: train it for longer with 'backsweep resume run"
        ):
            train(chain(method="ter"), "run", quiet=True)


def test_a_fleet_killed_while_its_folders_were_made_can_be_started_anew(tmp_path: Path) -> None:
    configs = {name: chain(method="uer", steps=20, warmup_steps=10) for name in ("first", "second")}
    create_run(tmp_path / "fleet" / "first", configs["first"])
    with pytest.raises(RunError, match="use --restart"):
        train_fleet(configs, tmp_path / "fleet", quiet=True)
    assert all(result.finished for result in train_fleet(configs, tmp_path / "fleet", quiet=True, restart=True))
    assert (tmp_path / "fleet" / "first.aside-1" / "config.json").exists()


def test_a_run_that_can_be_resumed_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "run", monkeypatch)
    with pytest.raises(RunError, match=r"holds a run: resume it with 'backsweep resume .*run', choose.*--restart"):
        train(chain(method="ter"), tmp_path / "run", quiet=True)


def test_a_folder_does_not_import_modules_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger_module.py").write_text("raise SystemExit('ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    train(chain(method="uer", steps=700), tmp_path / "run", quiet=True)
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "task": None, "env": "stranger_module:Game-v0", "exact": False}))
    for command in ("evaluate", "watch"):
        assert main([command, str(tmp_path / "run")]) == 2
    assert "stranger_module" not in sys.modules
    with pytest.raises(SystemExit, match="ran"):
        main(["evaluate", str(tmp_path / "run"), "--allow-import"])


OWN_GAME = """
import gymnasium
gymnasium.register("OwnGame-v0", entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv", max_episode_steps=20)
"""


def test_resuming_imports_no_module_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_game.py").write_text(OWN_GAME)
    monkeypatch.syspath_prepend(str(tmp_path))
    with monkeypatch.context() as patch:
        stop_at(200, patch, signal.SIGTERM)
        train(run_config(env="own_game:OwnGame-v0", method="uer", steps=400), tmp_path / "run", quiet=True)
    monkeypatch.delitem(sys.modules, "own_game")
    monkeypatch.delitem(gymnasium.registry, "OwnGame-v0")
    with pytest.raises(RunError, match=r"imports the module 'own_game'.*--allow-import"):
        resume(tmp_path / "run", quiet=True)
    assert "own_game" not in sys.modules
    (result,) = resume(tmp_path / "run", quiet=True, allow_import=True)
    assert result.finished


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "foo"], "device must be cpu or cuda"),
        (["--device", "meta"], "device must be cpu or cuda"),
        (["--device", "cuda"], "no CUDA device"),
        (["--wandb", "project"], "wandb is not installed"),
    ],
)
def test_what_this_machine_does_not_have_is_said_first(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["train", "nchain-10", "--method", "uer", "--folder", str(tmp_path / "run"), *options]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert not printed.out
    assert not (tmp_path / "run").exists()


def test_a_gpu_that_is_not_there_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(RunError, match=r"device is 'cuda:2', but this machine has cuda:0 to cuda:1"):
        train(chain(method="uer"), tmp_path / "run", device="cuda:2")
    assert not (tmp_path / "run").exists()


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from backsweep.cli import EXTRAS, main
sys.exit(main(sys.argv[2:]))
"""
"""Runs a command in a process of its own where a module is not installed."""


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("tyro", "train", "train"),
        ("rich", "train", "train"),
        ("torch", "train", "train"),
        ("torch", "evaluate", "train"),
        ("torch", "resume", "train"),
        ("torch", "report", "report"),  # which installs torch and what the report needs besides
    ],
)
def test_the_extra_that_is_missing_is_named(module: str, command: str, extra: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, module, command, "nchain-10"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2
    assert f"needs {module}" in done.stderr
    assert f"pip install 'backsweep[{extra}]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "extra"),
    [(["report", "results"], "report"), (["demo"], "report"), (["demo", "--order"], "demo")],
)
def test_without_matplotlib_nothing_is_begun(
    command: list[str],
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "records.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(command) == 2
    printed = capsys.readouterr()
    assert f"pip install 'backsweep[{extra}]'" in printed.err
    assert not printed.out
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_every_extra_that_is_named_is_there() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


def test_a_report_of_nothing_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]) == 2
    assert "holds no results" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    (tmp_path / "empty" / "records.jsonl").write_text("")
    (tmp_path / "file").write_text("")
    assert main(["report", str(tmp_path / "empty"), "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
