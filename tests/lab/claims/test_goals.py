"""The questions about graph values: their runs, and the verdicts of results with known answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep.agent import run_config
from backsweep.lab.claims.evidence import TrainedRun, read_evidence
from backsweep.lab.claims.groups import belongs_to
from backsweep.lab.claims.question import Grid, Verdict
from backsweep.lab.claims.questions import QUESTIONS, find_question
from backsweep.lab.claims.questions.shared import MINIGRID
from backsweep.lab.report.answers import Answer, make_report
from backsweep.lab.report.chart import Chart
from backsweep.lab.runs.jobs import run_configuration, sharing_key
from backsweep.lab.stats import steps_to_keep
from result_folders import write_run

OWN = [question for question in QUESTIONS if question.kind != "paper" and isinstance(question.plan("paper"), Grid)]
LENGTH = 1_000_000


def verdict(root: Path, question: str) -> Verdict:
    return find_question(question).decide(read_evidence(root))


def answer_to(root: Path, name: str) -> Answer:
    return next(answer for answer in make_report(root).answers if answer.id == name)


def options_of(question: str, label: str, task: str) -> tuple[str, dict[str, Any]]:
    variant = next(entry for entry in find_question(question).variants if entry.label == label)
    return variant.method, {"settings": "ours", **variant.options_on(task, "ours")}


def step_curve(solved_at: float | None, height: float = 1.0) -> list[float]:
    """Return 20 evaluations of which those from a share of the run on are solved; None: none is."""
    return [height if solved_at is not None and place >= 20 * solved_at else 0.0 for place in range(1, 21)]


def write(
    root: Path, question: str, label: str, task: str, curve: Sequence[float], seeds: int = 4, first: int = 100
) -> None:
    method, options = options_of(question, label, task)
    options.setdefault("exact", True)
    for seed in range(first, first + seeds):
        write_run(root, task, method, seed, 0.0, curve=curve, last_step=LENGTH, **options)


def test_a_curve_must_stay_where_it_got_to() -> None:
    steps = [10, 20, 30, 40]
    assert steps_to_keep(steps, [0.0, 0.9, 0.5, 1.0], 0.9) == (40.0, True)
    assert steps_to_keep(steps, [0.0, 0.95, 0.9, 1.0], 0.9) == (20.0, True)
    assert steps_to_keep(steps, [1.0, 1.0, 1.0, 1.0], 0.9) == (10.0, True)
    assert steps_to_keep(steps, [1.0, 1.0, 1.0, 0.89], 0.9) == (40.0, False)
    assert steps_to_keep(steps, [1.0, 1.0, 1.0, math.nan], 0.9) == (40.0, False)


@pytest.mark.parametrize("question", OWN, ids=lambda question: question.id)
def test_runs_have_our_settings_and_what_the_question_changes(question: Any) -> None:
    grid = question.plan("paper")
    assert isinstance(grid, Grid)
    assert len(set(grid.seeds)) >= 3
    changed = {"without scale", "without gap", "untried never", "with half a sweep"}
    for run in Grid(grid.tasks, grid.variants, grid.seeds[:1], grid.options, grid.task_options).runs():
        config = run_configuration(run)
        assert config["settings"] == "ours"
        short = {"lunarlander": 500_000, "CartPole-v1": 100_000}
        games = run.task.startswith(("minatar/", "atari/"))
        assert config["steps"] == (500_000 if games else short.get(run.task, LENGTH))
        where: dict[str, Any] = {"task": run.task}
        if run.task == "CartPole-v1":  # pays at once; its runs are older than waiting for a reward, and the same
            where = {"env": run.task, "explore_until_reward": False}
        given = ("steps", "task_options", "exact", "explore", "noise_limit", "cautious")
        told = {name: value for name, value in run.options.items() if name in given}
        plain = run_config(**where, method=run.variant.method, seed=run.seed, **told).to_json()
        more_updates = question.id == "G8" and " at " in run.variant.label
        if question.kind == "graph values" and run.variant.label not in changed and not more_updates:
            assert config == plain
        elif question.id == "G2" or more_updates:
            assert len([name for name in config if config[name] != plain[name]]) == 1


def test_graph_values_explore_by_the_graph_unless_a_line_says_otherwise() -> None:
    """Graph values are what `backsweep train` gives; methods without them draw random actions uniformly."""
    uniform = {"graph, uniform exploration", "without exploring"}
    for name in ("G1", "G2", "G3", "G4", "G5", "G6"):
        for run in find_question(name).plan("paper").runs():
            explores = run.variant.method in ("graph", "graph-uniform") and run.variant.label not in uniform
            assert run_configuration(run)["explore"] == ("graph" if explores else "uniform")
    assert run_config(MINIGRID[0]).explore == "graph"


@pytest.mark.parametrize("question", OWN, ids=lambda question: question.id)
def test_a_run_belongs_to_its_own_line_alone(question: Any) -> None:
    """By its whole configuration, as its folder holds it."""
    grid = question.plan("paper")
    empty: NDArray[np.float64] = np.zeros(0)
    for run in Grid(grid.tasks, grid.variants, grid.seeds[:1], grid.options, grid.task_options).runs():
        made = TrainedRun(Path("run"), run_configuration(run), True, empty, {}, {})
        assert made.task == run.task
        assert [variant.label for variant in question.variants if belongs_to(made, variant)] == [run.variant.label]


def test_every_method_has_as_many_trials() -> None:
    variants = find_question("T1").variants
    # Sweeps from good ends, CEER's cross-entropy, exploration and more updates are trials of one idea, not of a
    # method's constant.
    ideas = ("good ends", "ceer_imitation", "explores by the graph", "ratio")
    methods = [variant.method for variant in variants if not any(idea in variant.label for idea in ideas)]
    assert {methods.count(method) for method in set(methods) if not method.startswith("graph")} == {3}
    assert methods.count("graph-backup") == 3
    assert [variant.label for variant in variants][:3] == ["graph, gap 3", "graph, gap 10", "graph, gap 30"]
    configs = {str(sorted(variant.options.items())) + variant.method for variant in variants}
    assert len(configs) == len(variants)
    grid = find_question("T1").plan("paper")
    assert isinstance(grid, Grid)
    graph = [run for run in grid.subset(tasks=MINIGRID[:1]).runs() if run.variant.label.startswith("graph, gap")]
    assert len({sharing_key(run_configuration(run)) for run in graph}) == 1


class TestSoonest:
    def write_all(self, root: Path, graph: dict[str, float | None], rival: float | None, tasks: int = 7) -> None:
        for task in MINIGRID[:tasks]:
            write(root, "G1", "graph", task, step_curve(graph.get(task, 0.2)))
            for label, at in (("ter", rival), ("ceer", None), ("graph-backup", 0.9)):
                write(root, "G1", label, task, step_curve(at))

    def test_half_of_the_steps_on_every_task_holds(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, {}, rival=0.5)
        write(tmp_path, "G1", "erlam", MINIGRID[0], step_curve(0.1))
        found = verdict(tmp_path, "G1")
        assert found.headline == "holds"
        assert [check.holds for check in found.checks] == [True] * 8
        assert found.checks[0].found == "200,000 [200,000, 200,000]"
        first = found.more["Steps to 90% of episodes, by the best rival"][0]
        assert (first["best rival"], first["ratio"]) == ("ter", pytest.approx(0.4))
        rows = {row["method"]: row for row in found.more["Over tasks"]}
        assert rows["graph"]["runs that reach 0.9"] == "28 of 28"
        assert rows["ceer"]["runs that reach 0.9"] == "0 of 28"
        assert rows["ceer"]["mean steps, no more than the run has"].estimate == LENGTH
        assert rows["graph"]["mean steps, no more than the run has"].estimate == 200_000
        assert math.isinf(rows["ceer"]["median seed over all"])
        assert rows["erlam"]["tasks"] == 1
        assert rows["graph"]["success at the end"].estimate == 1.0

    def test_more_than_half_on_three_tasks_does_not(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, dict.fromkeys(MINIGRID[:3], 0.3), rival=0.5)
        found = verdict(tmp_path, "G1")
        assert found.outcome == "does not hold"
        assert found.checks[-1].found == "on 4 tasks, not on 3"
        assert all(check.holds for check in found.checks[:-1])

    def test_a_task_that_is_missed(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, {MINIGRID[6]: None}, rival=0.5)
        found = verdict(tmp_path, "G1")
        assert found.outcome == "does not hold"
        assert [f"of {MINIGRID[6]} within" in check.text for check in found.checks if check.holds is False] == [True]

    def test_what_a_rival_beyond_its_run_needs_is_not_known(self, tmp_path: Path) -> None:
        for task in MINIGRID:
            write(tmp_path, "G1", "graph", task, step_curve(0.7))
            for label in ("ter", "ceer", "graph-backup"):
                write(tmp_path, "G1", label, task, step_curve(None))
        found = verdict(tmp_path, "G1")
        assert found.outcome == "inconclusive"
        assert found.checks[-1].holds is None
        assert {row["best rival"] for row in found.more["Steps to 90% of episodes, by the best rival"]} == {
            "none gets there"
        }

    def test_few_tasks_leave_it_open(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, {}, rival=0.5, tasks=3)
        found = verdict(tmp_path, "G1")
        assert found.headline == "inconclusive on 3 of 7 tasks"

    def test_ninety_five_percent_is_more_than_ninety(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, {}, rival=0.5, tasks=1)
        for path in tmp_path.rglob("records.jsonl"):
            if path.parent.parent.name.startswith("graph-") and "backup" not in path.parent.parent.name:
                path.write_text(path.read_text().replace('"exact_success":1.0', '"exact_success":0.93'))
        checks = verdict(tmp_path, "G1").checks
        assert [check.holds for check in checks] == [False, None]
        assert checks[1].found == "on 1 tasks, not on 0"


def test_the_chart_shows_how_soon_runs_solve_their_tasks(tmp_path: Path) -> None:
    for task, at in ((MINIGRID[0], 0.2), (MINIGRID[1], 0.4)):
        write(tmp_path, "G1", "graph", task, step_curve(at))
        for label in ("ter", "ceer", "graph-backup"):
            write(tmp_path, "G1", label, task, step_curve(None))
    charts = answer_to(tmp_path, "G1").charts
    assert isinstance(charts[0], Chart)
    assert [chart.name for chart in charts] == ["g1-soonest", "g1-score", "g1-success", "g1-value-error"]
    together, first, _ = charts[0].facets
    assert (together.label, first.task) == ("all 2 tasks", MINIGRID[0])
    graph = together.series[0]
    assert list(zip(graph.x, graph.y, strict=True)) == [(0, 0), (200_000, 0.5), (400_000, 1.0), (LENGTH, 1.0)]
    assert first.series[0].y == [0.0, 1.0, 1.0]
    assert {series.name: series.y for series in together.series}["ceer"] == [0.0, 0.0]


def test_parts_of_the_method_are_compared_with_all_of_it(tmp_path: Path) -> None:
    worse = {
        "without scale": 0.9,
        "without gap": 0.7,
        "untried never": 0.8,
        "without priorities": 0.6,
        "without exploring": 0.5,
        "without graph": None,
    }
    for task in MINIGRID[:2]:
        write(tmp_path, "G2", "graph", task, step_curve(0.2))
        for label, at in worse.items():
            write(tmp_path, "G2", label, task, step_curve(at))
    answer = answer_to(tmp_path, "G2")
    assert answer.verdict.headline == "holds on 2 of 7 tasks"
    assert len(answer.verdict.checks) == 6
    leads = {
        row["against"]: row["difference"].estimate
        for row in answer.verdict.table
        if row["measure"] == "area under success"
    }
    assert leads["without graph"] > leads["without scale"] > leads["without gap"] > 0.3
    # Taken away or not, the runs are those of one method: none may be taken for another.
    assert {row["method"]: row["seeds"] for row in answer.sources} == dict.fromkeys(
        ("graph", *worse), "100, 101, 102, 103"
    )


class TestOtherWorlds:
    def write_all(self, root: Path, seeds: int = 5, **curves: dict[str, list[float]]) -> None:
        question = find_question("G3")
        for task in question.tasks:
            for label in question.compared:
                write(root, "G3", label, task, curves.get(label, {}).get(task, step_curve(0.5)), seeds=seeds)

    def test_ahead_on_one_and_equal_elsewhere_holds(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, graph={"CartPole-v1": step_curve(0.2)})
        # The same tasks as they usually are belong to other questions.
        for label in ("graph", "uer", "n-step"):
            write(tmp_path, "G1", label, "minigrid/doorkey", step_curve(None), seeds=9)
        found = verdict(tmp_path, "G3")
        assert found.headline == "holds"
        assert len(found.checks) == 17
        assert found.checks[-1].found == "CartPole-v1"
        assert "minigrid/doorkey with 10% random actions" in found.checks[3].text
        assert "area under the curve, over uer: 0 [0, 0]" in found.checks[3].found

    def test_behind_on_one_does_not(self, tmp_path: Path) -> None:
        self.write_all(tmp_path, graph={"CartPole-v1": step_curve(0.2)}, uer={"sokoban/6x6-1": step_curve(0.1)})
        found = verdict(tmp_path, "G3")
        assert found.outcome == "does not hold"
        assert [place for place, check in enumerate(found.checks) if check.holds is False] == [1]

    def test_ahead_nowhere_does_not(self, tmp_path: Path) -> None:
        self.write_all(tmp_path)
        assert verdict(tmp_path, "G3").outcome == "does not hold"

    @pytest.mark.parametrize(
        ("seeds", "caution"), [(3, "one comparison in 4 would."), (5, "one comparison in 16 would."), (8, None)]
    )
    def test_few_seeds_are_said_to_be_few(self, seeds: int, caution: str | None, tmp_path: Path) -> None:
        self.write_all(tmp_path, seeds)
        summary = verdict(tmp_path, "G3").summary
        assert summary.endswith(caution) if caution else "one comparison in" not in summary


def test_trials_are_shown_and_decide_nothing(tmp_path: Path) -> None:
    for label, at in (("graph, gap 3", 0.6), ("graph, gap 10", 0.3), ("uer, learning_rate 0.001", None)):
        write(tmp_path, "T1", label, MINIGRID[0], step_curve(at), seeds=2, first=10_000)
    answer = answer_to(tmp_path, "T1")
    assert answer.verdict.headline == "no verdict"
    trials = len(find_question("T1").variants)
    assert answer.verdict.summary == f"3 of {trials} trials on 1 of 7 tasks, 6 runs."
    rows = {row["method"]: row for row in answer.verdict.table}
    assert rows["graph, gap 10"]["mean steps, no more than the run has"].estimate == 300_000
    assert len(answer.sources) == 3
    # No other question sees them, and what is reported is not part of the trials.
    assert {answer.id for answer in make_report(tmp_path).answers if answer.verdict.outcome != "not run"} == {"T1"}
    write(tmp_path, "T1", "graph, gap 10", MINIGRID[1], step_curve(0.3), seeds=2)
    assert answer_to(tmp_path, "T1").verdict.records == 6


def test_what_is_usual_follows_the_settings() -> None:
    """A claim that says nothing about the ratio has the settings' own; one that varies it has what it varies."""
    ours = run_config(MINIGRID[0], method="ter").ratio
    assert ours != 0.25
    for name, expected in (("C3", {ours}), ("C7", {0.25, 1.0, 2.0})):
        grid = find_question(name).plan("paper")
        assert isinstance(grid, Grid)
        check = grid.with_settings("ours").subset(tasks=[grid.tasks[0]], seeds=[100])
        assert {run_configuration(run)["ratio"] for run in check.runs()} == expected
        plain = grid.subset(tasks=[grid.tasks[0]], seeds=[100])
        assert 0.25 in {run_configuration(run)["ratio"] for run in plain.runs()}
    shared = [entry.method for entry in find_question("C3").variants if entry.method != "discor"]
    soonest, best = (find_question(name).plan("paper") for name in ("G1", "C3"))
    assert isinstance(soonest, Grid)
    assert isinstance(best, Grid)

    def configs(grid: Grid) -> list[dict[str, Any]]:
        return [run_configuration(run) for run in grid.subset(MINIGRID[:1], shared, [100]).runs()]

    # Runs of the one are there for the other.
    assert all(config in configs(soonest) for config in configs(best.with_settings("ours")))


def test_claims_run_with_our_settings_have_an_answer_of_their_own(tmp_path: Path) -> None:
    for label in ("uer", "per", "ebu", "discor", "ter"):
        method, options = options_of("C3", label, MINIGRID[0])
        for seed in range(100, 104):
            write_run(tmp_path, MINIGRID[0], method, seed, 0.9 if label == "ter" else 0.4, **options)
    answer = answer_to(tmp_path, "C3 ours")
    assert answer.title == "MiniGrid: who learns best? (with our settings)"
    assert answer.verdict.headline == "reproduced on 1 of 7 tasks"
    assert "The runs have our settings: rewards scaled" in answer.verdict.summary
    assert "C3" not in {found.id for found in make_report(tmp_path).answers}  # not listed as waiting: it was run
