"""Checkpoints: everything needed to resume a fleet, in two alternating slots.

    checkpoints/a/replay-0 ... replay-N     one snapshot per run, only what changed is written
    checkpoints/a/state                     networks, optimiser, generators, environments, positions of the records
    checkpoints/b/...

The state is written last and names its replays by the digests of their manifests. A slot whose digests do not match was
being written when the process died; the other slot is then the newest complete one. After the first checkpoint at least
one slot is always complete.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import xxhash
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.extension import extended
from backsweep.agent.session.folder import (
    SINGLE,
    RunError,
    check_import,
    check_run_names,
    no_checkpoint,
    read_config,
)
from backsweep.agent.session.records import RecordWriter, checked_digest
from backsweep.checks import is_number
from backsweep.record_files import RecordsError
from backsweep.replay import Replay
from backsweep.run_files import AGENT, CHECKPOINTS, FLEET, MANIFEST, STATE
from backsweep.snapshot import SnapshotError, files, read_metadata, read_snapshot, write_snapshot
from backsweep.snapshot.saved_component import arrays_below

SLOTS = ("a", "b")
DAMAGED = ".damaged"
RUNS, RUN = "lanes", "lane"
"""What the runs of a fleet are called on disk; earlier releases called them lanes."""
KIND, AGENT_KIND = "backsweep training", "backsweep agent"
VERSION = 1


@dataclass(frozen=True)
class Loaded:
    """A fleet to train, new or from a checkpoint."""

    fleet: Fleet
    names: list[str]
    """The unfinished runs."""
    positions: list[int]
    """Where each run's records ended."""
    digests: list[str | None]
    """Of each run's records up to there."""


@dataclass(frozen=True)
class SavedReplay:
    """The replay of a run as of its newest checkpoint."""

    replay: Replay
    config: RunConfig
    step: int


def newest_replay(folder: Path, name: str | None = None) -> SavedReplay:
    """Return the replay of the run in a folder, or of the run `name` of the fleet there; no environment is made.

    The folder of one run of a fleet also works: its checkpoint is in the folder above.
    """
    if name is None and not (folder / CHECKPOINTS).exists() and (folder.parent / FLEET).exists():
        folder, name = folder.parent, folder.name
    with _refused(folder / CHECKPOINTS):
        return _newest_replay(folder, name)


def _newest_replay(folder: Path, name: str | None) -> SavedReplay:
    whole = [(step, slot) for step, slot, reason in _slots(folder) if reason is None]
    if not whole:
        raise RunError(f"{folder} has no checkpoint to read: runs write one every --checkpoint-interval steps")
    step, slot = whole[0]
    runs = read_metadata(slot / STATE, kind=KIND, versions={VERSION})[RUNS]
    names = [run["name"] for run in runs]
    if name is None and len(names) > 1:
        raise RunError(f"{folder} holds {len(names)} runs: name one of {', '.join(names)}")
    if name is not None and name not in names:
        there = "it holds a single run, so name none" if names == [SINGLE] else f"it has {', '.join(names)}"
        raise RunError(f"{folder} has no run {name!r} in its checkpoint; {there}")
    index = 0 if name is None else names.index(name)
    return SavedReplay(Replay.load(slot / f"replay-{index}"), _config_of(slot, runs[index]), step)


def save(folder: Path, fleet: Fleet, names: Sequence[str], writers: Sequence[RecordWriter]) -> None:
    """Write a checkpoint to the older slot."""
    slot = _next_slot(folder)
    digests = []
    for index, run in enumerate(fleet.runs):
        run.replay.save(slot / f"replay-{index}")
        digests.append(_digest(slot / f"replay-{index}"))
    learner_arrays, learner_values = fleet.learner.state()
    arrays = {f"learner/{name}": array for name, array in learner_arrays.items()}
    runs = []
    for index, run in enumerate(fleet.runs):
        own_arrays, own_values = run.state()
        arrays.update({f"{RUN}{index}/{name}": array for name, array in own_arrays.items()})
        runs.append({"name": names[index], "config": run.config.to_json(), "state": own_values})
    ends = [writer.kept for writer in writers]
    metadata = {
        "step": fleet.step,
        "learner": learner_values,
        RUNS: runs,
        "positions": [position for position, _ in ends],
        "records": [digest for _, digest in ends],
        "replays": digests,
    }
    write_snapshot(slot / STATE, arrays, metadata, kind=KIND, version=VERSION)
    for departed in itertools.takewhile(Path.exists, (slot / f"replay-{n}" for n in itertools.count(len(runs)))):
        shutil.rmtree(departed)


def load(
    folder: Path, *, device: str, warn: Callable[[str], None], allow_import: bool = False, steps: int = 0
) -> Loaded:
    """Return the fleet of the newest complete checkpoint, with `steps` for its runs if they have fewer.

    Warn if the very newest checkpoint is damaged.
    """
    with _refused(folder / CHECKPOINTS):
        return _load_newest(folder, device, warn, allow_import, steps)


def _load_newest(folder: Path, device: str, warn: Callable[[str], None], allow_import: bool, steps: int) -> Loaded:
    slots = _slots(folder)
    if not slots:
        raise no_checkpoint(folder)
    reasons: list[str] = []
    for step, slot, reason in slots:
        try:
            if reason is not None:
                raise reason
            loaded = _load_slot(folder, slot, device, allow_import, steps)
            for _, damaged, known in slots[: len(reasons)]:
                if known is None:  # the next checkpoint replaces the others anyway
                    _set_aside(damaged)
            return loaded
        except (SnapshotError, RecordsError, OSError) as error:
            reasons.append(f"{slot.name}: {error}")
            if len(reasons) < len(slots):
                at = "" if step < 0 else f" of step {step}"
                warn(f"the checkpoint{at} cannot be used; resuming from the previous one. {error}")
    raise RunError("no checkpoint can be used:\n  " + "\n  ".join(reasons))


def _set_aside(slot: Path) -> None:
    """Rename a damaged slot: it would count as the newest, and the next checkpoint would replace the complete one."""
    aside = slot.with_name(slot.name + DAMAGED)
    shutil.rmtree(aside, ignore_errors=True)
    slot.rename(aside)


def keep_newest(folder: Path) -> None:
    """Delete all but the newest slot of a finished run."""
    newest = [slot for _, slot, _ in _slots(folder)[:1]]
    for slot in (folder / CHECKPOINTS).iterdir():
        if slot not in newest:
            shutil.rmtree(slot, ignore_errors=True)


def exists(folder: Path) -> bool:
    """Return whether there is a checkpoint to resume from."""
    return any(reason is None for _, _, reason in _slots(folder))


def holds(folder: Path, name: str) -> bool:
    """Return whether resuming the session in a folder would continue a run.

    A damaged checkpoint counts, because whoever resumes it is told what is wrong with it.
    """
    with _refused(folder / CHECKPOINTS):
        slots = _slots(folder)
        whole = [slot for _, slot, reason in slots if reason is None]
        if not whole:
            return bool(slots)
        runs = read_metadata(whole[0] / STATE, kind=KIND, versions={VERSION})[RUNS]
        return name in [run["name"] for run in runs]


def remove(folder: Path) -> None:
    """Delete all checkpoints of a finished run."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def save_agent(folder: Path, fleet: Fleet, run: int) -> None:
    """Write one run's network separately, for uses that need only the agent."""
    parameters = fleet.learner.online[run].cpu().numpy()
    config = fleet.runs[run].config.to_json()
    metadata = {"step": fleet.step, "config": config, "reward_scale": float(fleet.learner.scales[run])}

    def write() -> None:
        write_snapshot(folder / AGENT, {"online": parameters}, metadata, kind=AGENT_KIND, version=VERSION)

    try:
        write()
    except SnapshotError:
        # The old one is damaged; replace it, since the network has all of its contents.
        shutil.rmtree(folder / AGENT)
        write()


def load_agent(folder: Path) -> tuple[NDArray[Any], int, float]:
    """Return the flat parameters of a run's network, the step they are from, and the scale of their values."""
    if not (folder / AGENT).exists():
        raise RunError(f"{folder} has no agent yet: the run stopped before its first checkpoint")
    snapshot = read_snapshot(folder / AGENT, kind=AGENT_KIND, versions={VERSION})
    with _refused(folder / AGENT):
        metadata, online = snapshot.metadata, snapshot.arrays["online"]
        scale, step = metadata.get("reward_scale", 1.0), metadata["step"]
        _check_counts(step)
        if not is_number(scale) or scale <= 0 or online.ndim != 1 or online.dtype.kind != "f":
            raise TypeError("its network or the scale of its values is none")
        return online, step, float(scale)


def _load_slot(folder: Path, slot: Path, device: str, allow_import: bool, steps: int) -> Loaded:
    snapshot = read_snapshot(slot / STATE, kind=KIND, versions={VERSION})
    metadata, runs = snapshot.metadata, snapshot.metadata[RUNS]
    names, positions = [run["name"] for run in runs], metadata["positions"]
    digests = metadata.get("records", [None] * len(runs))
    _check_names(folder, names)
    _check_counts(metadata["step"], *positions)
    for name, position, digest in zip(names, positions, digests, strict=True):
        checked_digest(folder / name, position, digest)
    replays = []
    for index, digest in enumerate(metadata["replays"]):
        replays.append(Replay.load(slot / f"replay-{index}"))
        if _digest(slot / f"replay-{index}") != digest:
            raise SnapshotError(slot, "its replay belongs to another checkpoint", "Use the other slot")
    saved = [_config_of(slot, run) for run in runs]
    for config in saved:
        check_import(config, allow_import)
    # A run that was given more steps may have older checkpoints than that.
    wanted = [max(steps, read_config(folder / name).steps) for name in names]
    configs = [extended(config, longest) for config, longest in zip(saved, wanted, strict=True)]
    fleet = Fleet(configs, device=device, replays=replays)
    fleet.step = metadata["step"]
    fleet.learner.load_state(arrays_below(snapshot.arrays, "learner/"), metadata["learner"])
    for index, run in enumerate(fleet.runs):
        run.load_state(arrays_below(snapshot.arrays, f"{RUN}{index}/"), runs[index]["state"])
        fleet.learner.scales[index] = run.reward_scale or 1.0
    return Loaded(fleet, names, positions, digests)


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Say what is wrong with entries that no release writes, instead of how they made the program stumble."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        reason = str(error) or "there is no memory left"
        raise RunError(f"{path} cannot be loaded: {reason}. Free memory, or use a machine that has more") from error
    except KeyError as error:
        raise RunError(
            f"{path}: the entry {error} is missing: this release of backsweep writes no such files"
        ) from error
    except (TypeError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
        raise RunError(f"{path} cannot be used ({error}): this release of backsweep writes no such files") from error


def _config_of(slot: Path, run: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a run in a checkpoint; the error of one that cannot be used names the checkpoint."""
    try:
        return RunConfig.from_json(run["config"])
    except ValueError as error:
        raise RunError(f"{slot} cannot be used: {error}") from error


def _check_names(folder: Path, names: Sequence[Any]) -> None:
    """Refuse a run outside the folder: its records would be truncated, and its agent replaced."""
    try:
        check_run_names(folder, names)
    except ValueError as error:
        raise RunError(f"the checkpoint in {folder} is not to be resumed: {error}") from error


def _check_counts(*counts: Any) -> None:
    """Refuse a step or a size of records that is no count."""
    for count in counts:
        if type(count) is not int or not 0 <= count < 2**53:
            raise TypeError(f"{count!r} is not a number of steps or bytes")


def _slots(folder: Path) -> list[tuple[int, Path, SnapshotError | None]]:
    """Return the used slots, newest first; a slot of unknown age counts as the newest."""
    found: list[tuple[int, Path, SnapshotError | None]] = []
    for name in SLOTS:
        slot = folder / CHECKPOINTS / name
        if not (slot / STATE / MANIFEST).exists():  # the first one was being written
            continue
        try:
            metadata = read_metadata(slot / STATE, kind=KIND, versions={VERSION})
        except SnapshotError as error:
            found.append((-1, slot, error))
            continue
        digests = metadata["replays"]
        if digests == [_digest(slot / f"replay-{index}") for index in range(len(digests))]:
            found.append((metadata["step"], slot, None))
        else:
            torn = SnapshotError(slot, "it was being written when the process ended", "Use the other slot")
            found.append((-1, slot, torn))
    return sorted(found, key=lambda entry: (entry[2] is None, -entry[0]))


def _next_slot(folder: Path) -> Path:
    """Return the slot to write: an empty or broken one, else the older."""
    whole = {slot.name: step for step, slot, reason in _slots(folder) if reason is None}
    name = next((name for name in SLOTS if name not in whole), min(whole, key=lambda name: whole[name], default="a"))
    slot = folder / CHECKPOINTS / name
    if name not in whole and (slot / STATE).exists():
        # A broken slot cannot be updated incrementally, and is useless.
        shutil.rmtree(slot)
    slot.mkdir(parents=True, exist_ok=True)
    return slot


def _digest(folder: Path) -> str:
    try:
        return xxhash.xxh3_128_hexdigest(files.read_whole(folder / MANIFEST))
    except OSError:
        return ""
