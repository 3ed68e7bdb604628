"""Gives a finished or interrupted run more steps, as if it had been started with them.

A run that is extended to N steps goes on from its checkpoint and is, to the last digit, the run that `train` makes of
its new configuration. That is the old one with `steps` N. One setting may have to change with it: PER's exponent rises
over a share of the run, which becomes smaller, so that it rises over as many rows as before.

`config.json` says how long a run is; checkpoints from before an extension take its length from there. An extension
writes, in this order:

    extension.json    the steps asked for: from here on `resume` carries the extension out
    finished.json     is removed
    config.json       the new configuration
    extension.json    is removed, when this is done for every run of the folder

Wherever a process is killed, the folder holds the old run, or one that `resume` takes to its new end.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import run_config
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.methods import beta_rows, method_for
from backsweep.agent.session.folder import SINGLE, RunError, is_finished, note_session, read_config, write_json
from backsweep.agent.session.records import EvaluationRecord, Record, last_record
from backsweep.checks import is_int
from backsweep.record_files import json_object
from backsweep.run_files import CONFIG, EXTENSION, FINISHED, FLEET
from backsweep.snapshot import files

if TYPE_CHECKING:
    from backsweep.agent.session.checkpoint import Loaded

OF_EXPERIMENT = re.compile(
    r"/runs/(fleets/[^/]+-\d+-[0-9a-f]{8}(-\d+)?|[^/]+/[^/]+-[0-9a-f]{12}/(seed-\d+|fleet-\d+-\d+(-\d+)?))$"
)
"""The folders that experiments make in their results, see `backsweep.lab.runs.jobs`."""


def extended(config: RunConfig, steps: int) -> RunConfig:
    """Return the configuration of a run that goes on to more steps; no schedule changes."""
    if steps <= config.steps:
        return config
    longer = dataclasses.replace(config, steps=steps)
    if method_for(longer) == method_for(config):
        return longer
    return dataclasses.replace(longer, per_beta_fraction=beta_rows(config) / steps)


def steps_to_take(folder: Path, steps: int | None) -> int:
    """Return how many steps the runs in a folder are to get, 0 if they are just resumed.

    `steps` is what the caller asks for; None carries out an extension that was cut short.
    """
    begun = _begun(folder)
    if steps is None:
        return begun
    if not is_int(steps):
        raise RunError(f"steps must be a whole number or None, got {steps!r}")
    names = _names(folder)
    lengths = {read_config(folder / name).steps for name in names}
    if steps < (longest := max(begun, *lengths)):
        raise RunError(f"steps must be {longest:,} or more, as many as {folder} has already, got {steps:,}")
    if not begun and lengths == {steps}:
        return 0
    if OF_EXPERIMENT.search(folder.resolve().as_posix()):
        raise RunError(
            f"{folder} belongs to an experiment's results, where a run is known by its configuration: copy the folder "
            "to another place, and give the copy more steps"
        )
    return int(steps)


def extend(folder: Path, loaded: Loaded) -> list[str]:
    """Give the runs of a folder their new configurations; return what the user should know.

    They have been loaded with their new steps, and the folder is locked.
    """
    fleet, names = loaded.fleet, loaded.names
    if left := [name for name in _names(folder) if name not in names and is_finished(folder / name)]:
        raise RunError(
            f"{folder} cannot be given more steps: {', '.join(left)} finished before the others, and the checkpoint "
            "holds only these"
        )
    told: list[str] = []
    for name, position, run in zip(names, loaded.positions, fleet.runs, strict=True):
        if (old := read_config(folder / name)) != run.config:
            told += remarks(old, run.config)
        if _has_records_of_an_end(fleet, last_record(folder / name, position)):
            told.append(
                f"what was recorded for the end at step {fleet.step:,} stays, and the next means begin there: the "
                "checkpoint is of an earlier release"
            )
    try:
        write_json(folder / EXTENSION, {"steps": max(run.config.steps for run in fleet.runs)})
        files.force_folder(folder)
        for name, run in zip(names, fleet.runs, strict=True):
            note_session(folder / name, "extended", step=fleet.step, steps=run.config.steps)
            (folder / name / FINISHED).unlink(missing_ok=True)
            write_json(folder / name / CONFIG, run.config.to_json())
            files.force_folder(folder / name)
        (folder / EXTENSION).unlink()
    except OSError as error:
        raise RunError(
            f"{folder} cannot be written: {error.strerror or error}. When that is solved, 'backsweep resume {folder}' "
            "carries on"
        ) from error
    return list(dict.fromkeys(told))


def _has_records_of_an_end(fleet: Fleet, last: Record | None) -> bool:
    """Return whether a checkpoint holds records that were only written because runs ended; ours leave them out."""
    if last is None or last.step != fleet.step:
        return False
    between_evaluations = last.kind == EvaluationRecord.kind and not fleet.passes(fleet.shared.evaluation_interval)
    return between_evaluations or not fleet.passes(fleet.shared.record_interval)


def remarks(old: RunConfig, new: RunConfig) -> Iterator[str]:
    """Yield what a user should know about an extension: which settings would be others in a new run."""
    yield f"{old.steps:,} steps become {new.steps:,}"
    if new.per_beta_fraction != old.per_beta_fraction:
        yield (
            f"per_beta_fraction is {new.per_beta_fraction:.6g} now, not {old.per_beta_fraction:.6g}: PER's exponent "
            f"rises over {beta_rows(old):,} rows, as before"
        )
    shortest, usual = _defaults(new, 1), _defaults(new, new.steps)
    following = [name for name in shortest if shortest[name] != usual[name] and name != "steps"]
    if kept := [name for name in following if getattr(new, name) != usual[name]]:
        ours, others = (", ".join(f"{name} {values[name]}" for name in kept) for values in (vars(new), usual))
        yield f"settings that follow from a run's length stay: {ours} (by default a new run has {others})"


def _defaults(config: RunConfig, steps: int) -> dict[str, Any]:
    """Return the default settings of such a run with that many steps."""
    options = {"task_options": config.task_options, "steps": steps}
    return vars(run_config(config.task, env=config.env, method=config.method, settings=config.settings, **options))


def _names(folder: Path) -> list[str]:
    """Return the names of the runs in a folder."""
    path = folder / FLEET
    if not path.exists():
        read_config(folder)  # says what is wrong if there is no run
        return [SINGLE]
    try:
        names = json_object(files.read_whole(path))["runs"]
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ValueError("it names no runs")
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    return names


def _begun(folder: Path) -> int:
    """Return the steps of an extension that was cut short, 0 if there is none."""
    path = folder / EXTENSION
    if not path.exists():
        return 0
    try:
        steps = json_object(files.read_whole(path))["steps"]
        if type(steps) is not int or steps < 1:
            raise ValueError(f"its steps are {steps!r}")
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} cannot be read: {error}. Without it the run keeps its steps") from error
    return steps
