"""Reads a results folder as a stream; only the evaluations of each run are parsed and kept.

A folder with `config.json` and `records.jsonl` (or `.jsonl.gz`) is a training run, a `.runs.jsonl.xz` file holds many.
Every other `.jsonl` or `.jsonl.gz` file holds one record of a study per line. Unreadable lines (the last one of a
killed run) are skipped, counted and reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.lab.records import ARCHIVE, OLD_ARCHIVE, ArchivedRun, archives_below, check_config, read_archive
from backsweep.lab.seeds import TUNING, purpose_of
from backsweep.record_files import RecordsError, check_finished_records, json_object, record_file, record_lines
from backsweep.run_files import CONFIG, FINISHED
from backsweep.snapshot import files
from backsweep.tasks import find_task

Records = list[dict[str, Any]]
NUMBERS = (
    "mean_return",
    "normalised_return",
    "exact_normalised",
    "exact_success",
    "value_error",
    "probe_q",
    "start_value",
    "discounted_return",
)
ADDED_LATER: dict[str, Any] = {
    "encoder": "projection",
    "cell": [0.1],
    "reward_scale": 1.0,
    "gap": 30.0,
    "gap_floor": None,
    "untried": "network",
    "refresh": 0.25,
    "graph_share": 0.2,
    "erlam_weight": 0.5,
    "backup_depth": 20,
    "n_step": 3,
    "advantage": 0.9,
    "root_candidates": 1,
    "ceer_imitation": 0.0,
    "ceer_temperature": 0.1,
    "explore": "uniform",
    "noise_limit": None,
    "cautious": False,
    "explore_until_reward": False,
}
"""Options added after the first runs were recorded, with the value that means the old behaviour. A run without the
option and one with this value have the same key: they are the same run."""


def settings_of(config: dict[str, Any]) -> str:
    """Return whose settings a run's configuration follows; the oldest records call the field `faithful`."""
    return str(config.get("settings", config.get("faithful", "paper")))


@dataclass(eq=False)
class TrainedRun:
    """One training run: its configuration and its evaluations, (evaluations,) each; NaN for unknown numbers."""

    place: Path
    """The folder of the run, or the archive that contains it."""
    config: dict[str, Any]
    finished: bool
    steps: NDArray[np.float64]
    numbers: dict[str, NDArray[np.float64]]
    graph: dict[str, float]
    """The last statistics of the replay's graph."""

    def shown(self, root: Path) -> str:
        """Return its name in remarks."""
        place = str(self.place.relative_to(root))
        return f"{place}, {self.method} seed {self.seed}" if place.endswith((ARCHIVE, OLD_ARCHIVE)) else place

    @property
    def task(self) -> str:
        """The task or environment."""
        return str(self.config.get("task") or self.config.get("env"))

    @property
    def method(self) -> str:
        """The method."""
        return str(self.config.get("method"))

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config.get("seed", 0))

    @property
    def follows(self) -> str:
        """Whose settings it follows: "ours", "paper" or "released"."""
        return settings_of(self.config)

    def option(self, name: str) -> Any:
        """Return an option, with its old meaning if the configuration is older than the option."""
        return self.config.get(name, ADDED_LATER.get(name))

    @property
    def score(self) -> NDArray[np.float64]:
        """The exact normalised return if known, else that of the episodes played, else the plain mean."""
        return self.numbers[self._scored_by]

    @property
    def bounded(self) -> bool:
        """Whether the score is on the scale from the worst episode, 0, to the best, 1."""
        return self._scored_by != "mean_return"

    @property
    def _scored_by(self) -> str:
        for name in ("exact_normalised", "normalised_return"):
            values = self.numbers[name]
            if len(values) and not np.isnan(values).any():
                return name
        return "mean_return"


@dataclass(eq=False)
class Evidence:
    """Everything that a results folder holds."""

    root: Path
    runs: list[TrainedRun] = field(default_factory=list)
    tuning: list[TrainedRun] = field(default_factory=list)
    """Runs with tuning seeds: no claim uses them."""
    records: dict[str, Records] = field(default_factory=dict)
    """Records of studies, by kind."""
    torn: dict[str, int] = field(default_factory=dict)
    """Files with lines that cannot be read, and how many."""
    left_out: list[str] = field(default_factory=list)
    """What was not used, and why."""
    damaged: list[str] = field(default_factory=list)
    """Files left out because they do not hold what their runs wrote."""
    _made: dict[str, Any] = field(default_factory=dict)

    def with_settings(self, settings: str) -> Evidence:
        """Return the evidence with only the runs of some settings (see `TrainedRun.follows`)."""
        return replace(self, runs=[run for run in self.runs if run.follows == settings], _made={})

    def of_tuning(self) -> Evidence:
        """Return the evidence with the tuning runs instead of those that are reported."""
        return replace(self, runs=self.tuning, tuning=[], _made={})

    def once(self, name: str, make: Callable[[Evidence], Any]) -> Any:
        """Return `make(evidence)`, which is computed once and cached."""
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]

    def of_kind(self, kind: str) -> Records:
        """Return the records of one kind."""
        return self.records.get(kind, [])


def read_evidence(root: Path) -> Evidence:
    """Read a results folder; files that do not hold what their runs wrote are left out and listed as damaged."""
    if not root.is_dir():
        raise ValueError(f"{root} is not a folder of results")
    evidence = Evidence(root)
    run_folders = sorted(path.parent for path in root.rglob(CONFIG))
    taken: set[Path] = set()
    for folder in run_folders:
        path = record_file(folder)
        if path is None:
            evidence.left_out.append(f"{folder.relative_to(root)}: no records yet")
            continue
        taken.add(path)
        try:
            check_finished_records(folder)
            _read_run(evidence, folder, path)
        except RecordsError as error:
            evidence.damaged.append(str(error))
    for path in archives_below(root):
        taken.add(path)
        try:  # a damaged archive is noticed before its first run
            for run in read_archive(path):
                if run is None:
                    shown = str(path.relative_to(root))
                    evidence.torn[shown] = evidence.torn.get(shown, 0) + 1
                else:
                    _read_archived(evidence, path, run)
        except RecordsError as error:
            evidence.damaged.append(str(error))
    for path in sorted(root.rglob("*.jsonl*")):
        if path not in taken and path.parent not in run_folders and path.name.endswith((".jsonl", ".jsonl.gz")):
            try:
                _read_study(evidence, path)
            except RecordsError as error:
                evidence.damaged.append(str(error))
    if count := len(evidence.tuning):
        runs = "1 run with a seed" if count == 1 else f"{count} runs with seeds"
        evidence.left_out.append(f"{runs} for tuning ({TUNING[0]} to {TUNING[-1]}): no claim rests on them")
    return evidence


def configuration_key(config: dict[str, Any], without: frozenset[str]) -> str:
    """Return a short key of a configuration without some fields; runs with different keys are never averaged."""
    kept = {
        "faithful" if name == "settings" else name: value  # the field's old name keeps keys stable
        for name, value in config.items()
        if name not in without and not (name in ADDED_LATER and value == ADDED_LATER[name])
    }
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def _read_run(evidence: Evidence, folder: Path, path: Path) -> None:
    shown = str(folder.relative_to(evidence.root))
    try:
        config = json_object(files.read_whole(folder / CONFIG))
        check_config(config)
    except (OSError, ValueError) as error:
        evidence.left_out.append(f"{shown}: its configuration cannot be read ({error})")
        return
    found: list[tuple[float, ...]] = []
    last_replay = b""
    torn = 0
    for line, whole in record_lines(path):
        if not whole:
            torn += 1
        elif line.startswith(b'{"kind":"evaluation"'):
            try:
                record = json_object(line)
                values = [record.get(name) for name in NUMBERS]
                found.append((float(record["step"]), *(np.nan if value is None else float(value) for value in values)))
            except (ValueError, KeyError, TypeError, OverflowError):
                torn += 1
        elif line.startswith(b'{"kind":"replay"'):
            last_replay = line
        elif not line.startswith(b'{"kind":"'):
            torn += 1
    if torn:
        evidence.torn[str(path.relative_to(evidence.root))] = torn
    if not found:
        evidence.left_out.append(f"{shown}: no evaluation yet")
        return
    graph: dict[str, float] = {}
    try:
        graph = _statistics(json_object(last_replay)) if last_replay else {}
    except ValueError:
        evidence.torn[str(path.relative_to(evidence.root))] = torn + 1
    _add(evidence, folder, config, (folder / FINISHED).exists(), np.array(found), graph)


def _read_archived(evidence: Evidence, path: Path, run: ArchivedRun) -> None:
    columns = [run.column("evaluation", name) for name in ("step", *NUMBERS)]
    if not columns[0]:
        evidence.left_out.append(f"{path.relative_to(evidence.root)}: a run without evaluations")
        return
    replays = run.records("replay")
    try:
        graph = _statistics(replays[-1]) if replays else {}
        table = np.array(columns, np.float64).T
    except (ValueError, TypeError, OverflowError) as error:
        evidence.left_out.append(f"{path.relative_to(evidence.root)}: a run whose records are no numbers ({error})")
        return
    _add(evidence, path, run.config, True, table, graph)


def _statistics(record: dict[str, Any]) -> dict[str, float]:
    """Return the statistics of a record of the replay; a ValueError if they are not numbers by name."""
    found = record.get("statistics", {})
    if not isinstance(found, dict) or not all(isinstance(value, (int, float)) for value in found.values()):
        raise ValueError("statistics must be numbers by name")
    return found


def _add(
    evidence: Evidence,
    place: Path,
    config: dict[str, Any],
    finished: bool,
    table: NDArray[np.float64],
    graph: dict[str, float],
) -> None:
    """Add a run; `table` has the step and the numbers of each evaluation."""
    numbers = {name: table[:, column + 1] for column, name in enumerate(NUMBERS)}
    run = TrainedRun(place, config, finished, table[:, 0], numbers, graph)
    (evidence.tuning if purpose_of(run.seed) == "tuning" else evidence.runs).append(run)


def _read_study(evidence: Evidence, path: Path) -> None:
    torn = 0
    for line, whole in record_lines(path):
        try:
            record = json_object(line) if whole else {}
        except ValueError:
            record = {}
        if not isinstance(record.get("kind"), str):
            torn += 1
        else:
            evidence.records.setdefault(record["kind"], []).append(record)
    if torn:
        evidence.torn[str(path.relative_to(evidence.root))] = torn


def return_bounds(config: dict[str, Any]) -> tuple[float, float] | None:
    """Return the worst and the best return of an episode of a run's task, None if unknown."""
    if config.get("task") is None:
        return None
    task = find_task(str(config["task"]))
    options = {**task.options_under(settings_of(config)), **config.get("task_options", {})}
    bounds: tuple[float, float] | None = task.options(**options).return_bounds
    return bounds


def left_bounds(values: ArrayLike, bounds: tuple[float, float]) -> bool:
    """Return whether a value is below the worst return of an episode or above the best; False for an unknown value.

    Values are discounted returns, which may be nearer to 0 than any return.
    """
    given = np.asarray(values, np.float64)
    low, high = min(bounds[0], 0.0), max(bounds[1], 0.0)
    return bool(((given < low) | (given > high)).any())
