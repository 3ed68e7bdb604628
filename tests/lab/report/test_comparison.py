"""The table of all claims, and how many seeds an open one would take."""

from __future__ import annotations

import doctest
import math
from pathlib import Path

import pytest

from backsweep.lab import stats
from backsweep.lab.claims.question import Check, Verdict
from backsweep.lab.claims.questions import CLAIMS
from backsweep.lab.report.answers import make_report
from backsweep.lab.report.comparison import comparison_entries
from backsweep.lab.report.markdown import block
from backsweep.lab.stats import MOST, Interval, seeds_needed
from result_folders import write_run


def test_an_interval_narrows_with_the_square_root_of_the_seeds() -> None:
    assert doctest.testmod(stats).failed == 0
    wide = Interval(0.02, -0.08, 0.12)
    assert seeds_needed(wide, 5, 0.1) == 6  # it does, nearly; fewer than there are never decide
    assert seeds_needed(wide, 5, 0.05) == 20
    assert seeds_needed(Interval(0.02, -0.18, 0.12), 5, 0.05) == 80  # by the longer side
    assert seeds_needed(wide, 5, 0.0) == seeds_needed(wide, 5, 1e-9) == MOST
    assert seeds_needed(Interval(0.0, -math.inf, 1.0), 5, 0.1) == MOST


def test_a_verdict_needs_what_its_open_parts_need() -> None:
    checks = (Check("a", "", True, 900), Check("b", "", None, 12), Check("c", "", None, 30), Check("d", "", None))
    assert Verdict("inconclusive", "", checks).needs_in_words == "about 30 seeds, if differences stay as they are"
    assert Verdict("reproduced", "", checks).needs is None
    assert Verdict("inconclusive", "", checks[3:]).needs_in_words == ""
    assert Verdict("inconclusive", "", (Check("a", "", None, MOST),)).needs_in_words.startswith("1,000 seeds or more")


def write_claims(root: Path) -> None:
    for task in ("minigrid/doorkey", "minigrid/unlock"):
        for seed in range(100, 105):
            noise = (0.4, -0.35, 0.3, -0.3, 0.1)[seed - 100]
            for place, method in enumerate(("ter", "uer", "per", "ebu", "discor")):
                write_run(root, task, method, seed, 0.5 + (noise if place == 1 else 0.0) - 0.05 * place)
                write_run(root, task, method, seed, 0.9 if method == "ter" else 0.1, settings="released")


def test_every_claim_has_a_row_with_its_settings_apart(tmp_path: Path) -> None:
    assert all(claim.stated for claim in CLAIMS)
    write_claims(tmp_path)
    report = make_report(tmp_path)
    entries = {entry["claim"].split(".")[0]: entry for entry in comparison_entries(report)}
    assert list(entries) == [claim.id for claim in CLAIMS]
    best = entries["C3"]
    assert best["with its settings"].startswith("inconclusive on 2 of 7 tasks: ")
    assert "over uniform" in best["with its settings"]
    assert (
        best["with the released code's"]
        == "reproduced on 2 of 7 tasks: 0.44 [0.44, 0.44] over uniform in area under the curve"
    )
    assert best["with scaled rewards (ours)"] == "-"
    assert entries["C4"]["what it would take"] == "245 runs: 7 tasks, 7 lines, 5 seeds"
    answer = next(answer for answer in report.answers if answer.id == "C3")
    needs = answer.verdict.needs
    assert needs is not None
    assert best["what it would take"] == f"about {needs} seeds, if differences stay as they are (with its settings)"
    assert entries["C12"]["what it would take"] == "25 runs: 1 task, 5 lines, 5 seeds"
    assert answer.short.endswith(f"It would take about {needs} seeds, if differences stay as they are.")
    assert f"| {best['claim']} | {best['the paper']} |" in block(report)


@pytest.mark.parametrize(("shift", "outcome"), [(0.0, "inconclusive"), (-90.0, "not reproduced")])
def test_a_claim_that_is_open_says_what_it_would_take(tmp_path: Path, shift: float, outcome: str) -> None:
    """LunarLander, where nothing may be further than 20 points behind."""
    for seed in range(100, 105):
        noise = (60.0, -55.0, 40.0, -45.0, 5.0)[seed - 100]
        write_run(tmp_path, "lunarlander", "uer", seed, 100.0, encoder="projection", cell=[0.1])
        write_run(tmp_path, "lunarlander", "ter", seed, 100.0 + noise + shift, encoder="projection", cell=[0.1])
        write_run(tmp_path, "lunarlander", "ter", seed, 100.0 + noise, encoder="quantized", cell=[0.1])
    (entry,) = [entry for entry in comparison_entries(make_report(tmp_path)) if entry["claim"].startswith("C23")]
    assert entry["with its settings"].startswith(outcome)
    assert ("seeds, if differences stay as they are" in entry["what it would take"]) == (outcome == "inconclusive")
