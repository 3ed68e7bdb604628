"""Results folders with known answers give the known verdicts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from backsweep.lab.claims import rules
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.question import Check, Verdict
from backsweep.lab.claims.questions import CLAIMS, QUESTIONS, find_question
from backsweep.lab.stats import Interval
from backsweep.lab.studies.tabular.learner import METHODS
from result_folders import write_chain, write_planned_chain, write_run

BASELINES = ("uer", "per", "ebu", "discor")
TASKS = ("minigrid/doorkey", "minigrid/unlock")


def verdict(root: Path, question: str) -> Verdict:
    return find_question(question).rule.decide(read_evidence(root))


def write_all(root: Path, ter: float, others: float, seeds: int = 5, **config: object) -> None:
    for task in TASKS:
        for seed in range(100, 100 + seeds):
            shift = 0.01 * (seed - 100)
            write_run(root, task, "ter", seed, ter + shift, **config)  # type: ignore[arg-type]
            for method in BASELINES:
                write_run(root, task, method, seed, others + shift, **config)  # type: ignore[arg-type]


def test_the_parts_of_a_claim_in_words() -> None:
    holds, open_, fails = Check("a", "1", True), Check("b", "2", None), Check("c", "3", False)

    def words(*checks: Check) -> str:
        return Verdict("inconclusive", "", checks).checks_in_words

    assert words() == words(holds) == ""
    assert words(holds, holds) == "Both parts hold."
    assert words(holds, open_) == "1 of 2 parts hold; undecided: b."
    assert words(holds, open_, open_, fails) == "1 of 4 parts hold; undecided: 2; against it: c."


def test_nothing_is_not_run(tmp_path: Path) -> None:
    assert {question.decide(read_evidence(tmp_path)).outcome for question in QUESTIONS} == {"not run"}


def test_a_clear_lead_is_reproduced(tmp_path: Path) -> None:
    write_all(tmp_path, 0.8, 0.5)
    found = verdict(tmp_path, "C3")
    assert found.outcome == "reproduced"
    final = [row for row in found.table if row["measure"] == "final score"]
    assert [row["difference"].estimate for row in final] == pytest.approx([0.3] * 4)
    assert all(row["difference"].low == pytest.approx(0.3) for row in final)  # seeds are paired: the shift cancels
    assert found.records == 2 * 5 * 5


def test_a_clear_deficit_and_a_tie_are_not_reproduced(tmp_path: Path) -> None:
    write_all(tmp_path / "behind", 0.4, 0.5)
    behind = verdict(tmp_path / "behind", "C3")
    assert behind.outcome == "not reproduced"
    assert behind.short.endswith("Over all tasks it is 0.1 behind uniform in the final score.")
    write_all(tmp_path / "tie", 0.5, 0.5)
    tie = verdict(tmp_path / "tie", "C3")
    assert tie.outcome == "not reproduced"
    assert tie.short.endswith("Over all tasks it is level with uniform in the final score.")


def test_few_seeds_and_missing_methods_decide_nothing(tmp_path: Path) -> None:
    write_all(tmp_path / "few", 0.8, 0.5, seeds=2)
    assert verdict(tmp_path / "few", "C3").outcome == "inconclusive"
    write_run(tmp_path / "alone", TASKS[0], "ter", 100, 0.9)
    alone = verdict(tmp_path / "alone", "C3")
    assert alone.outcome == "not run"
    assert alone.summary == "There is 1 run of ter, none of uer, per, ebu, discor."
    for seed, method in enumerate(("ter", *BASELINES)):
        write_run(tmp_path / "unpaired", TASKS[0], method, 100 + seed, 0.9)
    assert verdict(tmp_path / "unpaired", "C3").outcome == "inconclusive"


def test_likeness(tmp_path: Path) -> None:
    for seed in range(100, 106):
        noise = 0.004 * (seed % 3)
        write_run(tmp_path, TASKS[0], "ebu", seed, 0.6 + noise)
        write_run(tmp_path, TASKS[0], "ebu-mixed", seed, 0.61 - noise)
        write_run(tmp_path, TASKS[0], "ebu-notimeout", seed, 0.8 - noise)
    assert verdict(tmp_path, "C14").outcome == "reproduced"
    assert verdict(tmp_path, "C15").outcome == "not reproduced"
    assert verdict(tmp_path, "C15").short == "EBU is 0.19 behind EBU-notimeout in the final score."


def test_runs_with_other_settings_are_never_averaged(tmp_path: Path) -> None:
    write_all(tmp_path, 0.8, 0.5)
    # Another budget: TER looks terrible there, which must not touch the comparison above.
    for seed in range(100, 103):
        write_run(tmp_path, TASKS[0], "ter", seed, 0.0, steps=50)
    evidence = read_evidence(tmp_path)
    found = find_question("C3").rule.decide(evidence)
    assert found.outcome == "reproduced"
    assert found.table[0]["difference"].estimate == pytest.approx(0.3)
    assert any("3 runs with other settings" in remark for remark in evidence.left_out)


def test_a_varied_option_keeps_runs_apart(tmp_path: Path) -> None:
    for seed in range(100, 105):
        for eta in (0.1, 0.2, 0.5, 0.7):
            write_run(tmp_path, TASKS[0], "ter", seed, 0.7 if eta != 0.7 else 0.2, eta=eta)
    found = verdict(tmp_path, "C9")
    assert found.outcome == "not reproduced"
    apart = {(row["first"], row["second"]): row["difference"].estimate for row in found.table}
    assert apart["eta 0.1", "eta 0.7"] == pytest.approx(0.5)
    assert apart["eta 0.1", "eta 0.5"] == 0.0


def test_tuning_seeds_and_unfinished_runs_do_not_count(tmp_path: Path) -> None:
    write_all(tmp_path, 0.8, 0.5)
    write_run(tmp_path, TASKS[0], "ter", 10_000, 0.0)
    write_run(tmp_path, TASKS[0], "ter", 300, 0.0, finished=False)
    evidence = read_evidence(tmp_path)
    assert find_question("C3").rule.decide(evidence).outcome == "reproduced"
    assert "1 run with a seed for tuning (10000 to 10099): no claim rests on them" in evidence.left_out
    assert [run.seed for run in evidence.tuning] == [10_000]
    assert any("not finished" in remark for remark in evidence.left_out)


def test_torn_lines_are_passed_over_and_reported(tmp_path: Path) -> None:
    folder = write_run(tmp_path, TASKS[0], "ter", 100, 0.5, torn=True)
    with open(folder / "records.jsonl", "rb+") as file:  # a line in the middle that was overwritten
        file.seek(3)
        file.write(b"@@@")
    study = tmp_path / "coverage" / "seed-0100.jsonl.gz"
    study.parent.mkdir()
    study.write_bytes(gzip.compress(json.dumps({"kind": "coverage", "seed": 1}).encode() + b"\n" + b"x" * 5000))
    evidence = read_evidence(tmp_path)
    assert len(evidence.runs) == 1
    assert len(evidence.runs[0].steps) == 10
    assert evidence.torn[str((folder / "records.jsonl").relative_to(tmp_path))] == 2
    assert evidence.torn["coverage/seed-0100.jsonl.gz"] >= 1


def test_the_chain_with_the_papers_numbers_is_reproduced(tmp_path: Path) -> None:
    papers = {"ter": 30, "ebu": 60, "uer": 400, "per": 300, "ter-mixed": 60, "ter-shuffled": 300}
    write_chain(tmp_path, papers)
    found = verdict(tmp_path, "C1")
    assert found.outcome == "reproduced"
    assert "discor never" in found.summary
    row = next(row for row in found.table if row["method"] == "ter" and row["initial values"] == "zero")
    assert 29 <= row["median backups"].low <= row["median backups"].high <= 31
    assert verdict(tmp_path, "C2").outcome == "reproduced"
    assert verdict(tmp_path, "C19").outcome == "reproduced"


def test_the_chain_with_a_slow_ebu_is_not(tmp_path: Path) -> None:
    write_chain(tmp_path, {"ter": 30, "ebu": 600, "uer": 400, "per": 300, "discor": 400})
    found = verdict(tmp_path, "C1")
    assert found.outcome == "not reproduced"
    assert [check.holds for check in found.checks[:5]] == [True, False, True, True, True]
    write_chain(tmp_path / "backwards", {"ter": 500, "ebu": 60, "uer": 50, "per": 50, "discor": 50})
    assert verdict(tmp_path / "backwards", "C2").outcome == "not reproduced"


def test_planned_targets_on_the_chain(tmp_path: Path) -> None:
    fast = {"graph": 30, "graph-uniform": 8, "graph-sweep": 2, "ter": 400}
    write_planned_chain(tmp_path / "ahead", fast)
    ahead = verdict(tmp_path / "ahead", "G7")
    assert ahead.outcome == "reproduced"
    assert len(ahead.checks) == 18
    assert ahead.short.startswith(
        "Graph values solve the chain in 2 to 30 backups of 64 transitions, by how rows are drawn, TER"
    )
    assert ahead.records == 12 * 2 * 4 * 4
    write_planned_chain(tmp_path / "slow", {**fast, "graph": 500})
    slow = verdict(tmp_path / "slow", "G7")
    assert slow.outcome == "not reproduced"
    assert sum(check.holds is False for check in slow.checks) == 6


def test_a_run_that_two_studies_made_counts_once(tmp_path: Path) -> None:
    write_chain(tmp_path, {"ter": 30, "ebu": 60})
    alone = verdict(tmp_path, "C1").records
    again = tmp_path / "tabular-graph"
    again.mkdir()
    for path in (tmp_path / "tabular").iterdir():
        (again / path.name).write_text(path.read_text())
    assert verdict(tmp_path, "C1").records == alone == 12 * 2 * (len(METHODS) + 4)


def test_every_question_says_all_it_should() -> None:
    assert [question.id for question in CLAIMS] == [f"C{number}" for number in range(1, 25)]
    others = [question.id for question in QUESTIONS if question not in CLAIMS]
    assert others == ["G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "T1", "D1"]
    for question in QUESTIONS:
        assert all((question.title, question.question, question.claim, question.metric, question.decided_by))
        assert set(question.scales) == {"smoke", "laptop", "paper"}
    with pytest.raises(ValueError, match=r"unknown question 'C25'; there are C1 to C24 and G1, G2, .*, G8, T1, D1"):
        find_question("C25")


@pytest.mark.parametrize(
    ("firsts", "intervals", "words"),
    [
        ("ter per", [(-5, -60, 40), (3, -2, 9)], "No two methods can be told apart"),
        ("ter ter", [(-5, -60, 40), (3, -2, 9)], "TER cannot be told apart from CEER and uniform"),
        ("ter ter", [(-115, -198, -9), (3, -2, 9)], "Both comparisons stay open"),
        (
            "ter",
            [(-115, -198, -9)],
            "TER is 115 behind uniform in the final score; whether by more than 20 stays open",
        ),
    ],
)
def test_methods_that_differ_are_not_called_alike_while_a_rule_asks_for_more(
    firsts: str, intervals: list[tuple[float, float, float]], words: str
) -> None:
    table = [
        {"measure": "final score", "first": first, "second": second, "difference": Interval(*interval)}
        for first, second, interval in zip(firsts.split(), ("uer", "ceer"), intervals, strict=False)
    ]
    open_checks = [Check("", "", None)] * len(table)
    assert rules._undecided(open_checks, table, 20.0).startswith(f"{words}: ")
    if len(table) > 1:
        assert rules._undecided([Check("", "", True), *open_checks[1:]], table, 20.0).startswith("1 of 2")


@pytest.mark.parametrize(
    ("leads", "ends"),
    [
        ([0.2, 0.1], "ahead of both others"),
        ([0.2, -0.1], "behind at least one of 2 others"),
        ([0.2, None], "neither ahead of both others nor behind one of them"),
        ([None], "neither ahead of uniform nor behind it"),
        ([-0.1], "behind uniform"),
    ],
)
def test_where_a_method_ends_on_a_single_task_is_said_without_counting_tasks(
    leads: list[float | None], ends: str
) -> None:
    losers = ("uer", "per")[: len(leads)]
    entries = [
        {
            "task": "minigrid/doorkey",
            "measure": "final score",
            "against": loser,
            "difference": Interval(lead or 0.0, -1.0, 1.0),
            "p (Holm)": 0.3 if lead is None else 0.01,
        }
        for loser, lead in zip(losers, leads, strict=True)
    ]
    assert rules._where_ahead("ter", losers, "final score", entries) == f"TER ends {ends}."


@pytest.mark.parametrize(
    ("estimate", "size"), [(-123.2, "123"), (-0.394, "0.39"), (4.56, "4.6"), (0.0001, "less than 0.001")]
)
def test_a_difference_is_said_with_few_digits_and_no_exponent(estimate: float, size: str) -> None:
    furthest = {"measure": "final score", "first": "ter", "second": "uer", "difference": Interval(estimate, 0, 0)}
    where = "behind" if estimate < 0 else "ahead of"
    assert rules._decided([Check("", "", False)], furthest) == f"TER is {size} {where} uniform in the final score."
