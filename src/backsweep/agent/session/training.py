"""Starts and resumes runs, for the command line and Python."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from backsweep.agent.config import RunConfig, SessionConfig
from backsweep.agent.defaults import check_config, check_configs
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.memory_budget import check_memory, limits_on_device
from backsweep.agent.session import checkpoint, extension
from backsweep.agent.session.checkpoint import Loaded
from backsweep.agent.session.evaluation.exact_values import exact_evaluator
from backsweep.agent.session.folder import (
    SINGLE,
    RunError,
    check_run_names,
    create_run,
    default_folder,
    is_finished,
    locked,
    make_folder,
    move_aside,
    read_config,
    refuse_old_run,
    write_json,
)
from backsweep.agent.session.live import Live
from backsweep.agent.session.progress import Progress
from backsweep.agent.session.records import (
    EvaluationRecord,
    RecordFile,
    RecordWriter,
    Sink,
    TensorBoard,
    TrainingRecord,
    WeightsAndBiases,
)
from backsweep.agent.session.session import RunFiles, RunResult, Session
from backsweep.jit.compilation import most_threads, threads_in_use, use_threads
from backsweep.run_files import FLEET
from backsweep.snapshot import SnapshotError


def train(config: RunConfig, folder: str | os.PathLike[str] | None = None, **session: Any) -> RunResult:
    """Train one run from its start to its end; return how it ended.

    Parameters
    ----------
    config
        From `run_config`.
    folder
        The run's folder; by default runs/TASK/METHOD-seedSEED.
    session
        Fields of `SessionConfig`, such as `checkpoint_interval` or `quiet`.

    Examples
    --------
    >>> from backsweep.agent import run_config, train
    >>> config = run_config("nchain-5", method="uer", steps=200, warmup_steps=50)
    >>> result = train(config, "runs/chain", quiet=True)
    >>> result.finished, result.step
    (True, 200)
    """
    check_config(config)
    chosen = SessionConfig(**session)
    place = chosen.folder if folder is None else Path(folder)
    place = default_folder(config) if place is None else place
    return start(place, {SINGLE: config}, chosen)[0]


def train_fleet(configs: dict[str, RunConfig], folder: str | os.PathLike[str], **session: Any) -> list[RunResult]:
    """Train several runs together as a fleet; return how each ended.

    Parameters
    ----------
    configs
        The configuration of each run, by name; the run's folder has that name.
    folder
        The fleet's folder, with a folder for each run.
    session
        Fields of `SessionConfig`.

    Examples
    --------
    >>> from backsweep.agent import run_config, train_fleet
    >>> runs = {f"seed{seed}": run_config("nchain-5", steps=200, warmup_steps=50, seed=seed) for seed in range(2)}
    >>> [result.finished for result in train_fleet(runs, "runs/fleet", quiet=True)]
    [True, True]
    """
    check_configs(configs)
    return start(Path(folder), configs, SessionConfig(**session))


def start(folder: Path, configs: dict[str, RunConfig], session: SessionConfig) -> list[RunResult]:
    """Start the runs of a fleet."""
    check_session(session)
    try:
        check_run_names(folder, list(configs))
    except ValueError as error:
        raise RunError(str(error)) from error
    for name in configs if not session.restart else ():  # before anything is made
        refuse_old_run(folder / name)
    with torch_threads(session.threads):
        try:
            fleet = Fleet(list(configs.values()), device=session.device, convolutions=session.convolutions_by)
            check_memory(fleet, session)
            for config in configs.values():
                if config.exact:  # refuse a task without exact values now, not at the first evaluation
                    exact_evaluator(config)
        except (ValueError, ImportError) as error:
            raise RunError(str(error)) from error
        with live_page(fleet, session) as live:  # refuse a port in use before anything is written
            return _begin(folder, fleet, configs, session, live)


def _begin(
    folder: Path, fleet: Fleet, configs: dict[str, RunConfig], session: SessionConfig, live: Live | None
) -> list[RunResult]:
    # A fleet that was killed while its folders were made has no list of its runs: they are set aside one by one.
    for place in (folder, *(folder / name for name in configs)) if session.restart else ():
        if (aside := move_aside(place)) is not None and not session.quiet:
            print(f"the previous run in {place} is now in {aside}", flush=True)
    make_folder(folder)
    with locked(folder):
        for name in configs:  # again: another process may have been as quick
            refuse_old_run(folder / name)
        for name, config in configs.items():
            create_run(folder / name, config, convolutions=fleet.learner.convolutions)
        if not session.quiet:
            print(f"run folder: {folder}", flush=True)
        if list(configs) != [SINGLE]:
            write_json(folder / FLEET, {"runs": list(configs)})
        begun = Loaded(fleet, list(configs), [0] * len(configs), [None] * len(configs))
        return _run_session(folder, begun, session, live)


def resume(folder: str | os.PathLike[str], *, steps: int | None = None, **session: Any) -> list[RunResult]:
    """Resume the run or fleet in a folder from its newest complete checkpoint; return how each run ended.

    Parameters
    ----------
    folder
        The folder of a run or of a fleet.
    steps
        How many environment steps its runs are to have in all, to train a finished or interrupted run for longer. None
        keeps the number.
    session
        Fields of `SessionConfig`.

    Examples
    --------
    >>> from backsweep.agent import resume, run_config, train
    >>> result = train(run_config("nchain-5", steps=200, warmup_steps=50), "runs/chain-5", quiet=True)
    >>> [(result.finished, result.step) for result in resume("runs/chain-5", steps=300, quiet=True)]
    [(True, 300)]
    """
    place, chosen = Path(folder), SessionConfig(**session)
    check_session(chosen)
    if not (place / FLEET).exists():
        read_config(place)  # says what is wrong where there is no run
    with locked(place), torch_threads(chosen.threads):
        asked = extension.steps_to_take(place, steps)
        if is_finished(place) and not asked:
            raise RunError(
                f"{place} is already finished; 'backsweep evaluate {place}' shows how good it is, and "
                f"'backsweep resume {place} --steps N' trains it for longer, to N steps in all"
            )
        progress = Progress(0, quiet=chosen.quiet)
        load = partial(checkpoint.load, device=chosen.device, warn=progress.warn, allow_import=chosen.allow_import)
        try:
            loaded = load(place, steps=asked)
        except RunError:
            raise
        except (SnapshotError, ValueError) as error:
            raise RunError(f"the checkpoint in {place} cannot be used by this release: {error}") from error
        if not asked and all(is_finished(place / name) for name in loaded.names):
            raise RunError(
                f"the runs of {place} are already finished: {', '.join(loaded.names)}. 'backsweep resume {place} "
                "--steps N' trains them for longer, to N steps in all"
            )
        with live_page(loaded.fleet, chosen) as live:
            if asked:
                for line in extension.extend(place, loaded):
                    progress.note(line)
            return _run_session(place, loaded, chosen, live)


def check_session(session: SessionConfig) -> None:
    """Refuse options that this machine does not support, before anything is made or imported."""
    try:
        device = torch.device(session.device)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda") or session.device.startswith("cpu:"):
        raise RunError(f"device must be cpu or cuda, such as cuda:0, got {session.device!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RunError(f"device is {session.device!r}, but torch finds no CUDA device on this machine")
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise RunError(f"device is {session.device!r}, but this machine has cuda:0 to cuda:{count - 1}")
    for asked, package, extra in (
        (session.wandb is not None, "wandb", "wandb"),
        (session.tensorboard, "tensorboard", "tensorboard"),
    ):
        if asked and importlib.util.find_spec(package) is None:
            raise RunError(f"{package} is not installed: pip install 'backsweep[{extra}]'")


def _run_session(folder: Path, begun: Loaded, session: SessionConfig, live: Live | None) -> list[RunResult]:
    fleet, limits = begun.fleet, limits_on_device(begun.fleet, session)
    with fleet_threads(session.fleet_threads):
        files: list[RunFiles] = []
        for name, position, digest, run in zip(begun.names, begun.positions, begun.digests, fleet.runs, strict=True):
            place = folder / name
            sinks = _sinks(place, run.config, session)
            page = None if files else live  # which shows the first run
            try:
                writer = RecordWriter(place, position, sinks if page is None else (*sinks, page.curves), digest)
            except ValueError as error:
                raise RunError(str(error)) from error
            if page is not None and position:  # what the writer has kept of the earlier records
                for record in RecordFile(place):
                    page.curves.write(record)
            shown = run_title(run.config) if name == SINGLE else name
            evaluated, recorded = _last_records(place) if position else (None, None)
            waits = run.waits_for_reward
            files.append(RunFiles(name, shown, place, run, writer, evaluated, recorded, waits_for_reward=waits))
        total = max(run.config.steps for run in fleet.runs)
        progress = Progress(total, quiet=session.quiet)
        return Session(folder, fleet, files, session, progress, live, limits).run()


def run_title(config: RunConfig) -> str:
    """Return a run's title for displays."""
    return f"{config.environment} {config.method} seed {config.seed}"


@contextlib.contextmanager
def live_page(fleet: Fleet, session: SessionConfig) -> Iterator[Live | None]:
    """Serve the live page of the first run within the block, if `session.live`."""
    if not session.live:
        yield None
        return
    try:
        live = Live(fleet, run_title(fleet.runs[0].config), session.live_port)
    except ValueError as error:
        raise RunError(str(error)) from error
    if not session.quiet:
        print(f"watch it on {live.url} (this machine only, while it trains)", flush=True)
    try:
        yield live
    finally:
        live.close()


def _last_records(folder: Path) -> tuple[EvaluationRecord | None, int | None]:
    """Return a run's last evaluation, and the step of its last training record."""
    evaluated, recorded = None, None
    for record in RecordFile(folder):
        if isinstance(record, EvaluationRecord):
            evaluated = record
        elif isinstance(record, TrainingRecord):
            recorded = record.step
    return evaluated, recorded


def _sinks(folder: Path, config: RunConfig, session: SessionConfig) -> tuple[Sink, ...]:
    sinks: list[Sink] = []
    if session.tensorboard:
        sinks.append(TensorBoard(folder / "tensorboard"))
    if session.wandb is not None:
        name = f"{config.environment}-{config.method}-seed{config.seed}"
        sinks.append(WeightsAndBiases(session.wandb, name, config.to_json(), folder))
    return tuple(sinks)


@contextlib.contextmanager
def fleet_threads(count: int | None) -> Iterator[None]:
    """Step runs with `count` threads within the block; None uses all."""
    before = threads_in_use()
    use_threads(None if count is None else min(count, most_threads()))
    try:
        yield
    finally:
        use_threads(before)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads within the block; small networks are faster and reproducible with one."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
