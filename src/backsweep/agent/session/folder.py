"""The folder of a run.

    config.json       the configuration, complete
    machine.json      versions and machine of the session that started it
    sessions.jsonl    when it was started, resumed, stopped and finished, and whether its values diverged
    records.jsonl     evaluations and statistics (see `backsweep.agent.session.records`)
    agent/            the network as of the last checkpoint, for `evaluate` and `watch`
    checkpoints/      two alternating slots, each with everything needed to resume
    finished.json     exists when the run is complete
    extension.json    exists while the run is given more steps (see `backsweep.agent.session.extension`)

A fleet of several runs has a folder with `fleet.json` and `checkpoints/`, and in it one folder per run.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from backsweep.agent.config import RunConfig
from backsweep.record_files import json_object
from backsweep.run_files import CHECKPOINTS, CONFIG, EXTENSION, FINISHED, FLEET, MACHINE, MANIFEST, SESSIONS, STATE
from backsweep.snapshot import SnapshotError, files
from backsweep.snapshot.errors import WriterError
from backsweep.snapshot.lock import LOCK_NAME, writer_lock

SINGLE = "."
"""The name of the only run of a session, whose folder is the session's."""
OWN_NAMES = [(name,) for name in (CHECKPOINTS, FLEET, EXTENSION, LOCK_NAME)]
PACKAGES = ("backsweep", "torch", "numpy", "numba", "gymnasium")


class RunError(ValueError):
    """A problem with a run that the user can fix; shown without a traceback."""


def usual_folder(config: RunConfig) -> Path:
    """Return runs/TASK/METHOD-seedSEED."""
    return Path("runs") / re.sub(r"[^A-Za-z0-9._-]+", "-", config.environment) / f"{config.method}-seed{config.seed}"


def default_folder(config: RunConfig) -> Path:
    """Return runs/TASK/METHOD-seedSEED, with a number appended if that exists."""
    base = usual_folder(config)
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder


def refuse_old_run(folder: Path) -> None:
    """Raise an error if a folder holds a run."""
    if (folder / CONFIG).exists():
        raise RunError(
            f"{folder} already holds a run{_how_to_continue(folder)} choose another folder, or use --restart, which "
            "renames that run and starts over"
        )


def check_run_names(folder: Path, names: Sequence[Any]) -> None:
    """Raise a ValueError if a run of a fleet would lie outside the fleet's folder, or two at the same place."""
    root = folder.resolve()
    for name in names:
        if not isinstance(name, str) or not (folder / name).resolve().is_relative_to(root):
            raise ValueError(f"a run must be named by a folder inside of {folder}, got {name!r}")
        if PurePath(name).parts[:1] in OWN_NAMES:
            raise ValueError(f"a run must not be named like a file of its fleet, got {name!r}")
    if len({(folder / name).resolve() for name in names}) < len(names):
        raise ValueError(f"runs must have different names, got {', '.join(map(repr, names))}")


def make_folder(folder: Path) -> None:
    """Make a folder for a run or a fleet, if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror or error}") from error


def create_run(folder: Path, config: RunConfig, **machine: Any) -> None:
    """Make a run's folder; `machine` is noted with versions and machine."""
    make_folder(folder)
    try:
        write_json(folder / CONFIG, config.to_json())
        write_json(folder / MACHINE, {**describe_machine(), **machine})
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror or error}") from error


def _how_to_continue(folder: Path) -> str:
    """Say whether a run can be resumed; a run of a fleet has its checkpoints in the folder above."""
    place = next((place for place in (folder, folder.parent) if has_checkpoint(place)), None)
    if (folder / FINISHED).exists():
        longer = "" if place is None else f" train it for longer with 'backsweep resume {place} --steps N',"
        return f", which is finished:{longer}"
    return (
        " that stopped before its first checkpoint:"
        if place is None
        else f": resume it with 'backsweep resume {place}',"
    )


def no_checkpoint(folder: Path) -> RunError:
    """Return an error that says why there is no checkpoint to resume a run or fleet from."""
    if (folder.parent / FLEET).exists():
        why = f"{folder} is a run of a fleet, whose runs train together: resume the fleet, {folder.parent}"
    elif any(folder.rglob(FINISHED)):
        why = (
            f"{folder} is finished and has no checkpoint to go on from: a run keeps its last one, as large as its "
            "replay, unless it is trained with --no-final-checkpoint (final_checkpoint=False). Train it again, with "
            "more steps"
        )
    else:
        why = (
            f"{folder} has no checkpoint yet: the run stopped before its first one. Start it again with the command "
            "that started it and --restart, which renames the old folder"
        )
    return RunError(why)


def has_checkpoint(folder: Path) -> bool:
    """Return whether a run or fleet has checkpoints, whole or damaged."""
    return any(folder.glob(f"{CHECKPOINTS}/*/{STATE}/{MANIFEST}"))


def move_aside(folder: Path) -> Path | None:
    """Rename the run or fleet in a folder and return its new path; None if there is none."""
    if not ((folder / CONFIG).exists() or (folder / FLEET).exists()):
        return None
    with locked(folder):
        number = 1
        while (aside := folder.with_name(f"{folder.name}.aside-{number}")).exists():
            number += 1
        folder.rename(aside)
    return aside


def check_import(config: RunConfig, allowed: bool) -> None:
    """Refuse an environment of a run's folder that would import a module without permission."""
    module = (config.env or "").partition(":")[0] if ":" in (config.env or "") else None
    if module is not None and not allowed and module not in sys.modules:
        raise RunError(
            f"the run's environment {config.env!r} imports the module {module!r}, which runs its code: if you trust "
            "the folder and the module, give --allow-import (in Python: import it first, or allow_import=True)"
        )


def read_config(folder: Path) -> RunConfig:
    """Return the configuration of the run in a folder."""
    path = folder / CONFIG
    try:
        return RunConfig.from_json(json_object(files.read_whole(path)))
    except (FileNotFoundError, NotADirectoryError):
        if not folder.exists():
            raise RunError(f"there is no folder {folder}") from None
        what = f"there is no {CONFIG} in it" if folder.is_dir() else "it is not a folder"
        raise RunError(f"{folder} holds no run: {what}") from None
    except (ValueError, TypeError, OSError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error


def note_session(folder: Path, event: str, **values: Any) -> None:
    """Record an event of the run, with the time."""
    line = json.dumps({"event": event, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **values})
    try:
        with files.opened(folder / SESSIONS, "a", files.regular_and_no_link) as file:
            file.write(line + "\n")
    except OSError as error:
        raise RunError(f"{folder / SESSIONS} cannot be written: {error.strerror}") from error


def is_finished(folder: str | os.PathLike[str]) -> bool:
    """Return whether the run in a folder is finished."""
    return (Path(folder) / FINISHED).exists()


def write_json(path: Path, value: Any) -> None:
    """Write a small file whole or not at all."""
    files.stage(path, (json.dumps(value, indent=2) + "\n").encode())
    files.publish(path)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the run's folder, so that no second process trains the same run."""
    lock = writer_lock(folder)
    try:
        lock.__enter__()
    except WriterError:
        raise RunError(f"{folder} is being trained by another process") from None
    except SnapshotError as error:  # what lies in place of the lock is none
        raise RunError(str(error)) from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def describe_machine() -> dict[str, Any]:
    """Return versions and machine."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "python": sys.version.split()[0],
        "versions": versions,
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
