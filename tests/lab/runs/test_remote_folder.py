"""Results behind a URL: what is sent can be resumed from, wherever sending stops."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="needs fsspec")

from backsweep.agent import is_finished, train, train_fleet
from backsweep.agent.session import checkpoint
from backsweep.agent.session.folder import SINGLE, RunError, locked
from backsweep.lab.runs.jobs import Job
from backsweep.lab.runs.ray_engine import Cluster, _clear_stale
from backsweep.lab.runs.remote_folder import RemoteFolder, is_url, newest_state
from backsweep.lab.runs.worker import _train, _what_is_left
from trainer_helpers import paper_config

CHAIN: dict[str, Any] = {
    "warmup_steps": 50,
    "evaluation_interval": 100,
    "evaluation_episodes": 1,
    "record_interval": 50,
    "probe_size": 4,
    "capacity": 200,
}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folder of a run after its first, second and third checkpoint."""
    made: list[Path] = []
    save = checkpoint.save

    def save_and_copy(folder: Path, *more: Any) -> None:
        save(folder, *more)
        made.append(tmp_path_factory.mktemp("stage") / "run")
        shutil.copytree(folder, made[-1])

    config = paper_config("nchain-6", method="ter", seed=1, steps=300, **CHAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", save_and_copy)
        train(config, tmp_path_factory.mktemp("run") / "run", quiet=True, checkpoint_interval=100)
    assert len(made) >= 3
    return made[:3]


def become(folder: Path, stage: Path) -> None:
    """Let a folder be as it was at another stage."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stage, folder)


def test_a_run_goes_there_and_comes_back(stages: list[Path], tmp_path: Path) -> None:
    here, bucket = tmp_path / "here", tmp_path / "bucket"
    remote = RemoteFolder(f"file://{bucket}", here)
    for stage in stages:
        become(here / "runs" / "it", stage)
        assert newest_state(here / "runs" / "it") != ()
        remote.push("runs/it")
    again = RemoteFolder(f"file://{bucket}", tmp_path / "again")
    again.pull("runs/it", checkpoints=True)
    found = tmp_path / "again" / "runs" / "it"
    assert checkpoint.exists(found)
    assert (found / "records.jsonl").read_bytes() == (stages[-1] / "records.jsonl").read_bytes()
    assert not (found / "writer.lock").exists()
    light = RemoteFolder(f"file://{bucket}", tmp_path / "light")
    light.pull("", checkpoints=False)
    # What is not found to have a checkpoint is removed on both sides, and starts again.
    assert checkpoint.holds(tmp_path / "light" / "runs" / "it", SINGLE)
    assert not list((tmp_path / "light").rglob("*.safetensors"))[5:]  # the agent's own at the most
    shutil.rmtree(here / "runs" / "it" / "checkpoints")
    (here / "runs" / "it" / "finished.json").write_text("{}")
    remote.push("runs/it")
    assert not [path for path in (bucket / "runs" / "it" / "checkpoints").rglob("*") if path.is_file()]
    remote.remove("runs/it")
    assert not (bucket / "runs" / "it").exists()
    assert not (here / "runs" / "it").exists()


def test_wherever_sending_stops_there_is_a_checkpoint(
    stages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = 0
    while True:
        here, bucket = tmp_path / f"here-{cut}", tmp_path / f"bucket-{cut}"
        remote = RemoteFolder(f"file://{bucket}", here)
        become(here / "it", stages[0])
        remote.push("it")
        become(here / "it", stages[1])
        sent, put = [0], remote._files.put_file

        def stop(*arguments: Any, sent: list[int] = sent, put: Any = put, **more: Any) -> None:
            sent[0] += 1
            if sent[0] > cut:  # noqa: B023 - called before it changes
                raise OSError("the network is gone")
            put(*arguments, **more)

        with monkeypatch.context() as patch:
            patch.setattr(remote._files, "put_file", stop)
            try:
                remote.push("it")
                whole = True
            except OSError:
                whole = False
        again = RemoteFolder(f"file://{bucket}", tmp_path / f"again-{cut}")
        again.pull("it", checkpoints=True)
        loaded = checkpoint.load(tmp_path / f"again-{cut}" / "it", device="cpu", warn=lambda _: None)
        assert loaded.fleet.step in (100, 200)
        if whole:
            assert loaded.fleet.step == 200
            break
        cut += 1
    assert cut > 5


def planned_anew(cluster: Cluster, name: str) -> Job:
    """Return the job of a run that had no checkpoint when it was planned."""
    order = {"kind": "train", "folder": str(cluster.root / name), "removed": [str(cluster.root / name)]}
    return Job("it", order, 100)


@pytest.mark.parametrize("since", ["nothing", "a checkpoint", "its end"])
def test_what_another_command_has_sent_since_is_not_removed(since: str, stages: list[Path], tmp_path: Path) -> None:
    bucket, theirs = tmp_path / "bucket", tmp_path / "theirs"
    shutil.copytree(stages[0], theirs / "runs" / "it", ignore=shutil.ignore_patterns("checkpoints"))
    other = RemoteFolder(f"file://{bucket}", theirs)
    other.push("runs/it")
    remote = RemoteFolder(f"file://{bucket}", tmp_path / "here")
    remote.pull("", checkpoints=False)
    cluster = Cluster(f"file://{bucket}", tmp_path / "here", remote=remote)
    job = planned_anew(cluster, "runs/it")
    if since == "a checkpoint":
        become(theirs / "runs" / "it", stages[0])
    elif since == "its end":
        (theirs / "runs" / "it" / "finished.json").write_text("{}")
    other.push("runs/it")
    _clear_stale(job, cluster)
    assert job.order["removed"] == []
    assert (bucket / "runs" / "it" / "config.json").exists() == (since != "nothing")
    assert (tmp_path / "here" / "runs" / "it").exists() == (since != "nothing")


def test_a_run_that_leaves_its_fleet_behind_a_url_is_removed_alone(stages: list[Path], tmp_path: Path) -> None:
    bucket, theirs = tmp_path / "bucket", tmp_path / "theirs" / "runs" / "fleet"
    for name in ("it", "other"):
        shutil.copytree(stages[0], theirs / name, ignore=shutil.ignore_patterns("checkpoints"))
    shutil.copytree(stages[0] / "checkpoints", theirs / "checkpoints")  # of a single run, not of these
    (theirs / "fleet.json").write_text("{}")
    RemoteFolder(f"file://{bucket}", tmp_path / "theirs").push("runs/fleet")
    remote = RemoteFolder(f"file://{bucket}", tmp_path / "here")
    remote.pull("", checkpoints=False)
    _clear_stale(planned_anew(cluster := Cluster("", tmp_path / "here", remote=remote), "runs/fleet/it"), cluster)
    assert [path.name for path in sorted((bucket / "runs" / "fleet").iterdir())] == [
        "checkpoints",
        "fleet.json",
        "other",
    ]


def test_in_a_shared_folder_a_job_removes_what_it_replaces_under_its_lock(stages: list[Path], tmp_path: Path) -> None:
    shutil.copytree(stages[0], tmp_path / "it", ignore=shutil.ignore_patterns("checkpoints"))
    job = planned_anew(cluster := Cluster(str(tmp_path), tmp_path), "it")
    with locked(tmp_path / "it"):  # another command trains it
        _clear_stale(job, cluster)
        assert (tmp_path / "it" / "config.json").exists()
    assert job.order["removed"] == [str(tmp_path / "it")]


def test_what_a_lost_process_left_is_removed_under_its_lock(
    stages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it"
    shutil.copytree(stages[0], folder, ignore=shutil.ignore_patterns("checkpoints"))
    tried: list[str] = []

    def remove(path: Path, **_: Any) -> None:
        with pytest.raises(RunError, match="is being trained by another process"), locked(folder):
            pass
        tried.append(path.name)

    monkeypatch.setattr("backsweep.lab.runs.worker.shutil.rmtree", remove)
    config = {".": {}}
    assert _what_is_left(folder, config) == ("train", config)
    assert "it" in tried
    monkeypatch.setattr("backsweep.lab.runs.worker.LOCK_PATIENCE", 0.0)
    monkeypatch.setattr("backsweep.lab.runs.worker.time.sleep", lambda _: None)
    with locked(folder), pytest.raises(RunError, match="is being trained by another process"):
        _what_is_left(folder, config)


def test_a_failed_run_begins_again_where_a_lost_process_had_finished_the_others(tmp_path: Path) -> None:
    options = {**CHAIN, "method": "uer", "evaluation_interval": 50}
    configs = {name: paper_config("nchain-6", steps=steps, **options) for name, steps in (("a", 100), ("b", 150))}
    train_fleet(configs, tmp_path, quiet=True, engine="plain")  # the checkpoint holds b alone
    (tmp_path / "a" / "finished.json").unlink()
    finished = (tmp_path / "b" / "records.jsonl").read_bytes()
    given = {name: config.to_json() for name, config in configs.items()}
    order = {"kind": "train", "folder": str(tmp_path), "device": "cpu", "configs": given, "again": True}
    assert _train({**order, "session": {"engine": "plain"}}) == 0
    assert all(is_finished(tmp_path / name) for name in configs)
    assert (tmp_path / "b" / "records.jsonl").read_bytes() == finished


def test_urls_are_told_from_folders() -> None:
    assert is_url("s3://bucket/results")
    assert is_url("file:///results")
    assert not is_url(Path("results"))
    assert not is_url("/nfs/results")
