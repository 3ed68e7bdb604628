"""C16 by counting and by training; C18 on a human player's scale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.question import Grid, Study, Verdict
from backsweep.lab.claims.questions import find_question
from backsweep.lab.report.answers import make_report
from result_folders import write_run

TASKS = ("minigrid/doorkey", "minigrid/simplecrossing-hard")


def decided(root: Path, question: str = "C16") -> Verdict:
    return find_question(question).rule.decide(read_evidence(root))


def write_collisions(root: Path, count: int) -> None:
    (root / "collisions").mkdir(parents=True)
    records = [
        {"kind": "collisions", "seed": 100, "task": task, "dimension": d, "collisions": count if d == 1 else 0}
        | {"observations": 7000}
        for task in TASKS
        for d in (1, 3)
    ]
    (root / "collisions" / "seed-0100.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")


def write_trained(root: Path, finals: dict[int, float]) -> None:
    for dimension, final in finals.items():
        for task in TASKS:
            for seed in range(100, 105):
                write_run(root, task, "ter", seed, final + 0.01 * (seed - 100), dimension=dimension)


def test_counting_decides_if_nothing_collides(tmp_path: Path) -> None:
    write_collisions(tmp_path, 0)
    found = decided(tmp_path)
    assert found.outcome == "reproduced"
    assert found.short == "No two states share a key of 1 number or more. Not trained with yet."
    write_trained(tmp_path, {1: 0.2, 2: 0.8, 3: 0.8, 8: 0.8})
    assert decided(tmp_path).outcome == "reproduced"


@pytest.mark.parametrize(("at_one", "outcome"), [(0.8, "reproduced"), (0.6, "not reproduced"), (None, "inconclusive")])
def test_with_collisions_the_runs_decide(tmp_path: Path, at_one: float | None, outcome: str) -> None:
    write_collisions(tmp_path, 2)
    if at_one is not None:
        write_trained(tmp_path, {1: at_one, 2: 0.8, 3: 0.8, 8: 0.81})
    found = decided(tmp_path)
    assert found.outcome == outcome
    assert found.short.startswith("4 pairs of states share a key of 1 number, none a key of 3 or more.")
    if at_one is not None:
        assert len(found.checks) == 6
        assert len(found.more["Collisions"]) == 2


def test_the_study_has_one_answer_until_there_are_runs_with_other_settings(tmp_path: Path) -> None:
    """Another question's runs at d = 3 alone neither make an answer nor a remark about values."""
    write_collisions(tmp_path, 2)
    for seed in range(100, 103):
        write_run(tmp_path, TASKS[0], "ter", seed, 0.5, dimension=3, probe_q=1e6)
        write_run(tmp_path, TASKS[0], "ter", seed, 0.5, dimension=3, settings="ours", ratio=0.5)

    def answers() -> list[tuple[str, str]]:
        return [(a.id, a.caution) for a in make_report(tmp_path).answers if a.question.id == "C16"]

    assert answers() == [("C16", "")]
    for seed in range(100, 103):
        for dimension in (1, 2, 8):
            write_run(tmp_path, TASKS[0], "ter", seed, 0.5, dimension=dimension, settings="ours", ratio=0.5)
    assert answers() == [("C16", ""), ("C16 ours", "")]


def test_it_plans_a_study_and_training() -> None:
    study, grid = find_question("C16").plans("paper")
    assert isinstance(study, Study)
    assert isinstance(grid, Grid)
    assert sorted({run.options["dimension"] for run in grid.runs()}) == [1, 2, 3, 8]
    assert find_question("C17").plans("paper") == ()


def test_atari_is_on_a_human_players_scale(tmp_path: Path) -> None:
    """Half a point of Pong and 50 of Kangaroo are the same distance; returns are not pooled as they are."""

    def write(root: Path, ter: dict[str, float]) -> None:
        for task, other in (("atari/pong", -6.0), ("atari/kangaroo", 1500.0)):
            for seed in range(100, 103):
                for method in ("ter", "uer", "per"):
                    final = ter[task] if method == "ter" else other
                    write_run(root, task, method, seed, final + 0.001 * seed, curve=[final + 0.001 * seed])

    write(tmp_path / "alike", {"atari/pong": -5.5, "atari/kangaroo": 1550.0})
    found = decided(tmp_path / "alike", "C18")
    assert found.outcome == "reproduced"
    assert found.table[0]["difference"].estimate == pytest.approx((0.5 / 30.0 + 50.0 / 2983.0) / 2)
    write(tmp_path / "ahead", {"atari/pong": -1.0, "atari/kangaroo": 2000.0})
    assert decided(tmp_path / "ahead", "C18").outcome == "not reproduced"
