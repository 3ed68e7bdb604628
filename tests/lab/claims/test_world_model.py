"""C17 from made-up records of DreamerV2 beside made-up runs of TER and graph values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.lab.claims.evidence import Evidence, read_evidence
from backsweep.lab.claims.question import Verdict
from backsweep.lab.claims.questions import find_question
from backsweep.lab.claims.questions.world_model import RULE
from backsweep.lab.claims.world_model_runs import WORLD_MODEL, world_model_runs
from backsweep.lab.report.answers import Answer, make_report
from backsweep.lab.report.comparison import comparison_entries
from result_folders import write_run

DOORKEY, DOORS = "minigrid/doorkey", "minigrid/redbluedoors"
SEEDS = (100, 101, 102)
EARLY, LATE, SOLVED = (0.1, 0.2), (0.3, 0.5), (0.95, 0.97)
PAPER = 6_000_000
"""The paper's budget on DoorKey."""


def write_dreamer(
    root: Path, task: str, curve: Sequence[float], seeds: Sequence[int] = SEEDS, every: int = 25_000, **other: Any
) -> None:
    """Write runs of DreamerV2 that solve these shares of episodes, as `benchmarks.world_model` does."""
    folder = root / "world-model"
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        known = {"method": "dreamer-v2", "task": task, "seed": seed}
        records: list[dict[str, Any]] = [{"kind": "world-model run", **known, "settings": {}}]
        for place, share in enumerate(curve, 1):
            numbers = {"success": share, "normalised_return": share, "episodes": 100, "seconds": 60.0 * place}
            records.append({"kind": "world-model", **known, "step": place * every, **numbers, **other})
        records.append({"kind": "world-model end", **known, "step": len(curve) * every})
        with gzip.open(folder / f"{task.replace('/', '-')}.seed-{seed:04d}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))


def write_own(
    root: Path, task: str, method: str, curve: Sequence[float], seeds: Sequence[int] = SEEDS, every: int = 25_000
) -> None:
    """Write runs with our settings, as G1 has them."""
    options = next(variant.options for variant in RULE.variants if variant.label == method)
    for seed in seeds:
        last = every * len(curve)
        write_run(root, task, method, seed, 0.0, curve=curve, last_step=last, exact=True, settings="ours", **options)


def decided(root: Path) -> Verdict:
    return RULE.decide(read_evidence(root))


def answers(root: Path) -> list[Answer]:
    return [answer for answer in make_report(root).answers if answer.question.id == "C17"]


def test_without_records_it_says_what_it_would_take(tmp_path: Path) -> None:
    write_own(tmp_path, DOORKEY, "ter", SOLVED)
    (answer,) = answers(tmp_path)
    assert (answer.id, answer.verdict.outcome) == ("C17", "not run")
    entry = next(entry for entry in comparison_entries(make_report(tmp_path)) if entry["claim"].startswith("C17"))
    assert "python -m benchmarks.world_model" in entry["what it would take"]


def test_records_without_runs_of_ter_decide_nothing(tmp_path: Path) -> None:
    write_dreamer(tmp_path, DOORKEY, SOLVED)
    write_own(tmp_path, DOORKEY, "graph", SOLVED)
    assert decided(tmp_path).outcome == "not run"


@pytest.mark.parametrize(
    ("ter", "dreamer", "outcome"),
    [
        (SOLVED, SOLVED, "reproduced"),
        ((0.91, 0.92), (0.95, 0.99), "not reproduced"),  # solved by both, and lower by more than the margin
        (SOLVED, EARLY, "inconclusive"),  # DreamerV2 may still get there
        (EARLY, SOLVED, "inconclusive"),
        (EARLY, EARLY, "inconclusive"),
    ],
)
def test_long_before_the_papers_budget_only_solved_tasks_decide(
    tmp_path: Path, ter: Sequence[float], dreamer: Sequence[float], outcome: str
) -> None:
    write_own(tmp_path, DOORKEY, "ter", ter)
    write_dreamer(tmp_path, DOORKEY, dreamer)
    found = decided(tmp_path)
    assert (found.outcome, found.about) == (outcome, "1 of 4 tasks")
    assert ("too early to tell" in found.checks[0].found) == (outcome == "inconclusive")


@pytest.mark.parametrize(
    ("ter", "dreamer", "outcome"),
    [(LATE, LATE, "reproduced"), (SOLVED, EARLY, "reproduced"), (EARLY, LATE, "not reproduced")],
)
def test_from_half_of_the_papers_budget_on_every_task_decides(
    tmp_path: Path, ter: Sequence[float], dreamer: Sequence[float], outcome: str
) -> None:
    write_own(tmp_path, DOORKEY, "ter", ter, every=PAPER // 4)
    write_dreamer(tmp_path, DOORKEY, dreamer, every=PAPER // 4)
    assert decided(tmp_path).outcome == outcome


def test_fewer_than_three_paired_seeds_decide_nothing(tmp_path: Path) -> None:
    write_own(tmp_path, DOORKEY, "ter", SOLVED, seeds=(100, 101, 103))
    write_dreamer(tmp_path, DOORKEY, SOLVED)
    found = decided(tmp_path)
    assert found.outcome == "inconclusive"
    assert found.checks[0].found.endswith("2 paired seeds; fewer than 3 decide nothing")


def test_three_tasks_of_four_are_enough(tmp_path: Path) -> None:
    tasks = (DOORKEY, DOORS, "minigrid/unlock", "minigrid/simplecrossing-easy")
    for task in tasks:
        write_own(tmp_path, task, "ter", (0.91, 0.92) if task == DOORKEY else SOLVED)
        write_dreamer(tmp_path, task, (0.95, 0.99) if task == DOORKEY else SOLVED)
    found = decided(tmp_path)
    assert (found.outcome, found.about) == ("reproduced", "")
    assert [check.holds for check in found.checks].count(False) == 1


def test_runs_are_cut_to_the_steps_that_both_made(tmp_path: Path) -> None:
    """What TER does later is not compared with what DreamerV2 did earlier."""
    write_own(tmp_path, DOORKEY, "ter", (0.1, 0.2, 0.9, 1.0))
    write_own(tmp_path, DOORKEY, "graph", (0.5, 1.0, 1.0, 1.0))
    write_dreamer(tmp_path, DOORKEY, (0.0, 0.4))
    ter, graph, dreamer = decided(tmp_path).table
    assert [entry["method"] for entry in (ter, graph, dreamer)] == ["ter", "graph", WORLD_MODEL]
    assert {entry["steps"] for entry in (ter, graph, dreamer)} == {50_000}
    assert [entry["score at the end"].estimate for entry in (ter, graph, dreamer)] == pytest.approx([0.2, 1.0, 0.4])
    assert graph["runs that solve 90% for good"] == "3 of 3"
    assert (ter["minutes a run"], dreamer["minutes a run"]) == (None, 2.0)


def test_a_seed_that_was_stopped_early_shortens_the_comparison(tmp_path: Path) -> None:
    write_own(tmp_path, DOORKEY, "ter", (0.1, 0.2, 0.3))
    write_dreamer(tmp_path, DOORKEY, (0.1, 0.2, 0.3), seeds=(100, 101))
    write_dreamer(tmp_path, DOORKEY, (0.1, 0.2), seeds=(102,))
    assert {entry["steps"] for entry in decided(tmp_path).table} == {50_000}


def test_the_page_has_its_table_and_curves_under_our_settings(tmp_path: Path) -> None:
    for task in (DOORKEY, DOORS):
        write_own(tmp_path, task, "ter", (*EARLY, *SOLVED))
        write_own(tmp_path, task, "graph", (*SOLVED, *SOLVED))
        write_dreamer(tmp_path, task, EARLY)
    (answer,) = answers(tmp_path)
    assert (answer.id, answer.verdict.about) == ("C17 ours", "2 of 4 tasks")
    assert len(answer.verdict.table) == 6
    assert answer.short == (
        "Episodes that reach the goal: TER 20%, graph values 97%, DreamerV2 20% on minigrid/doorkey after 50,000 "
        "steps; TER 20%, graph values 97%, DreamerV2 20% on minigrid/redbluedoors after 50,000 steps."
    )
    assert [chart.name for chart in answer.charts] == ["c17-score", "c17-success"]
    assert (answer.scores, answer.thresholds) == ([], [])  # they would be about whole runs
    assert {entry["method"] for entry in answer.sources} == {"ter", "graph"}


def test_tuning_seeds_are_left_out(tmp_path: Path) -> None:
    write_dreamer(tmp_path, DOORKEY, SOLVED, seeds=(10_000,))
    assert world_model_runs(read_evidence(tmp_path)) == {}


@pytest.mark.parametrize("bad", [{"success": None}, {"seconds": "long"}, {"task": 3}, {"seed": "x"}, {"step": None}])
def test_records_that_make_no_sense_are_left_out_and_reported(tmp_path: Path, bad: dict[str, Any]) -> None:
    write_dreamer(tmp_path, DOORKEY, SOLVED, seeds=(100,))
    evidence = read_evidence(tmp_path)
    evidence.records["world-model"].append({**evidence.records["world-model"][0], **bad})
    found = world_model_runs(evidence)
    assert list(found) == [DOORKEY]
    assert found[DOORKEY][100].steps.tolist() == [25_000, 50_000]
    assert evidence.left_out == ["a record of DreamerV2 without its task, seed or numbers"]


def test_of_two_different_records_of_a_step_the_first_counts(tmp_path: Path) -> None:
    write_dreamer(tmp_path, DOORKEY, SOLVED, seeds=(100,))
    evidence: Evidence = read_evidence(tmp_path)
    evidence.records["world-model"].append({**evidence.records["world-model"][0], "success": 0.0})
    assert np.array_equal(world_model_runs(evidence)[DOORKEY][100].success, SOLVED)
    assert evidence.left_out == ["minigrid/doorkey, DreamerV2 seed 100: step 25,000 twice"]


def test_its_runs_are_made_apart() -> None:
    assert find_question("C17").plans("paper") == ()
