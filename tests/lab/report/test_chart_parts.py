"""What charts are made of: one look for each method, plain numbers, lines that coincide, pictures of tasks."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.agent.palette import METHODS, SHADES, SPARE, Look, in_order, looks, pyplot, shaded, title_of
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.measured_rules import reported
from backsweep.lab.claims.question import Verdict
from backsweep.lab.claims.questions import QUESTIONS, find_question
from backsweep.lab.report import figures
from backsweep.lab.report.chart import Chart, DotCategory, DotChart, Dots, Facet, Series, short_number, task_title
from backsweep.lab.report.charts import coverage, speeds
from backsweep.lab.report.figures import COLUMNS, dashes, draw
from backsweep.lab.report.learning_charts import learning, trials
from backsweep.lab.report.page import colours, thumbnail, thumbnails
from backsweep.lab.report.solving_time import SolvingTimes, read_soonest, soonest_chart, soonest_sentence
from backsweep.lab.stats import Interval
from result_folders import write_straight_runs


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_colours_are_variables_that_css_accepts() -> None:
    names = re.findall(r"(--[^:]*):", colours())
    assert len(names) == 2 * (len(SHADES) * len(METHODS) + len(SPARE))
    assert all(re.fullmatch(r"--[a-z0-9-]+", name) for name in names)


def test_every_method_has_a_colour_that_can_be_seen_on_light_and_dark() -> None:
    shades = [shaded(look, shade, "") for look in METHODS.values() for shade in range(len(SHADES))]
    pairs = [(look.light, look.dark) for look in shades] + list(SPARE)
    assert min(contrast(light, "#ffffff") for light, _ in pairs) >= 3
    assert min(contrast(dark, "#1a2026") for _, dark in pairs) >= 3
    # Each method has a colour that nothing else has.
    assert len({light for light, _ in pairs}) == len({dark for _, dark in pairs}) == len(pairs)


def test_a_method_and_its_variants_that_are_compared_look_different() -> None:
    for first, second in (
        ("ebu", "ebu-mixed"),
        ("ebu", "ebu-notimeout"),
        ("ter", "ter-shuffled"),
        ("ter", "ter-visits"),
    ):
        for pair in zip(*((METHODS[name].light, METHODS[name].dark) for name in (first, second)), strict=True):
            parts = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in pair]
            assert np.linalg.norm(np.subtract(*parts)) > 60, (first, second)


def test_a_method_has_one_colour_and_one_place_whatever_else_is_shown() -> None:
    for question in QUESTIONS:
        names = [variant.label for variant in question.variants]
        shown = looks(names)
        assert list(shown) == in_order(names)
        assert all(shown[name] == METHODS[name] for name in names if name in METHODS)
        if question.id != "T1":  # a table of trials has more lines than there are colours
            assert len({look.light for look in shown.values()}) == len(shown), question.id
            assert len({look.dark for look in shown.values()}) == len(shown), question.id
    assert in_order(["uer", "something", "ter", "graph", "ter"]) == ["graph", "ter", "uer", "something"]
    assert title_of("ebu, beta 0, no timeouts") == "EBU (beta 0, no timeouts)"
    assert title_of("uer at 0.25") == "uniform at 0.25"
    assert title_of("eta 0.5") == "eta 0.5"
    assert title_of("per, per_alpha 0.6") == "PER (alpha 0.6)"
    assert title_of("uer, learning_rate 0.001") == "uniform (learning rate 0.001)"


def test_settings_of_a_method_are_shades_of_its_colour() -> None:
    shown = looks(["uer", "uer, small buffer", "per at 0.25", "per at 1", "per at 2", "eta 0.5"])
    assert shown["uer"] == METHODS["uer"]
    assert shown["per at 0.25"] == Look("PER at 0.25", METHODS["per"].light, METHODS["per"].dark)
    assert shown["uer, small buffer"] == shaded(METHODS["uer"], 1, "uniform (small buffer)")
    assert shown["eta 0.5"].light == SPARE[0][0]
    darker = [luminance(shown[f"per at {ratio}"].light) for ratio in ("0.25", "1", "2")]
    assert darker == sorted(darker, reverse=True)
    many = [f"per, alpha {place}" for place in range(len(SHADES) + 1)]
    assert [look.light for look in looks(many).values()] == [light for light, _ in SPARE[: len(many)]]


def test_a_line_looks_the_same_on_every_chart_of_its_question() -> None:
    known = ("graph", "without scale", "without gap", "without graph")
    curve = [0.0, 1.0]
    facets = [Facet("a", [Series(name, curve, curve) for name in ("without graph", "graph")])]
    chart = Chart("few", "", "", "", facets, known=known)
    every = looks(known)
    assert chart.looks == {"graph": every["graph"], "without graph": every["without graph"]}
    assert list(chart.looks) == ["graph", "without graph"]
    dots = DotChart("dots", "", "", [DotCategory("a", [Dots("without gap", [1.0]), Dots("graph", [1.0])])], known=known)
    assert dots.looks["without gap"] == every["without gap"]
    evidence = read_evidence(Path(__file__).parents[3] / "results").with_settings("ours")
    question = find_question("G2")
    charts = learning(question, evidence, "g2", question.decide(evidence))
    assert len(charts) > 2
    for name in charts[0].looks:
        assert len({chart.looks[name] for chart in charts if name in chart.looks}) == 1, name
    order = list(looks([variant.label for variant in question.variants]))
    assert all(list(chart.looks) == [name for name in order if name in chart.looks] for chart in charts)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1e11, "", "100 billion"),
        (2.5e12, "", "2.5 trillion"),
        (1_500_000, "", "1.5M"),
        (25_000, "", "25k"),
        (9_999, "", "9,999"),
        (0.25, "", "0.25"),
        (0.00001, "", "1e-05"),
        (0, "", "0"),
        (0.9, "percent", "90%"),
        (1e20, "", "1e20"),
    ],
)
def test_axes_have_plain_numbers(value: float, unit: str, text: str) -> None:
    assert short_number(value, unit) == text  # type: ignore[arg-type]


def test_tasks_are_called_what_readers_call_them() -> None:
    titles = {
        "minigrid/doorkey": "DoorKey",
        "minigrid/simplecrossing-hard": "SimpleCrossing-Hard",
        "sokoban/7x7-2": "Sokoban 7x7-2",
        "minatar/space-invaders": "MinAtar Space Invaders",
        "atari/pong": "Pong",
        "lunarlander": "LunarLander",
        "nchain-20": "nchain-20",
    }
    assert {task: task_title(task) for task in titles} == titles


def test_lines_on_top_of_each_other_take_turns_where_they_meet_and_only_there() -> None:
    x = np.linspace(0, 100, 201).tolist()
    flat, rising = [0.0] * 201, [max(0.0, at - 50) / 50 for at in x]
    apart = [1.0] * 201
    found = dashes([Series("a", x, flat), Series("b", x, rising), Series("c", x, apart)])
    assert set(found) == {"a", "b"}
    width = 100 / COLUMNS
    for name in ("a", "b"):
        first = [stretch for stretch in found[name] if stretch[1] <= 50 - width]
        second = [stretch for stretch in found[name] if stretch[0] >= 50 + width]
        assert len(first) == pytest.approx(COLUMNS / 4, abs=1.5)
        assert len(second) == pytest.approx(COLUMNS / 2, abs=1.5)
    assert not {stretch for stretch in found["a"] if stretch[1] <= 48} & set(found["b"])
    assert dashes([Series("a", x, flat)]) == {}
    same = dashes([Series(name, [1.0, 10.0, 100.0], [0.0, 0.5, 1.0], steps=True) for name in "abc"], log_x=True)
    assert [len(same[name]) for name in "abc"] == [COLUMNS / 3] * 3


def test_small_pictures_of_tasks() -> None:
    found = thumbnails(["minigrid/doorkey", "", "no such task", "minigrid/doorkey"])
    assert list(found) == ["minigrid/doorkey"]
    assert len(found["minigrid/doorkey"]) < 20_000
    assert thumbnail("minigrid/unlock") != found["minigrid/doorkey"]


def test_who_is_first_is_read_from_the_runs_of_the_question(tmp_path: Path) -> None:
    write_straight_runs(tmp_path, {"graph": 1.0, "ter": 0.5, "uer": 0.95})
    found = read_soonest(read_evidence(tmp_path), find_question("G1"))
    assert found is not None
    assert found.methods == ["graph", "ter", "uer"]
    assert found.medians("minigrid/doorkey") == {"graph": 900.0, "ter": np.inf, "uer": 1_000.0}
    assert found.reached("minigrid/unlock", "ter") == (0, 3)
    assert soonest_sentence(found) == (
        "Graph values solve both tasks first, after 900 steps by the median seed; "
        "the next best method needs 1.1 times as many."
    )
    chart = soonest_chart(found)
    assert [entry.label for entry in chart.categories] == ["DoorKey", "Unlock"]
    assert chart.categories[0].dots[1] == Dots("ter", [np.inf] * 3, np.inf, note="0 of 3 runs get there")
    draw(chart, tmp_path / "soonest.png")
    assert (tmp_path / "soonest.png").stat().st_size > 2_000
    # Other settings of a method are no line of the question.
    write_straight_runs(tmp_path / "other", {"graph": 0.2}, gap=1.0)
    assert read_soonest(read_evidence(tmp_path), find_question("G1")) == found
    # Nor are runs with a setting that only another question varies.
    write_straight_runs(tmp_path / "projections", {"ter": 1.0}, dimension=8)
    assert read_soonest(read_evidence(tmp_path), find_question("G1")) == found


def test_the_median_is_the_one_that_rules_use() -> None:
    """With an even number of seeds it is the step by which half of them are done, not one between two runs."""
    steps = {("minigrid/doorkey", "graph"): {0: 100.0, 1: 200.0}, ("minigrid/doorkey", "ter"): {0: 300.0, 1: np.inf}}
    found = SolvingTimes(steps, 1_000)
    assert found.medians("minigrid/doorkey") == {"graph": 100.0, "ter": 300.0}
    assert (found.mean("graph"), found.mean("ter")) == (150.0, 650.0)  # who does not get there counts with the budget


def test_other_lines_of_the_first_method_are_told_apart_from_its_rivals() -> None:
    tasks = ("minigrid/doorkey", "minigrid/unlock")
    medians = {"graph": (100.0, 200.0), "graph, uniform exploration": (120.0, 300.0), "ter": (200.0, 260.0)}
    steps = {(task, name): {0: at[place]} for name, at in medians.items() for place, task in enumerate(tasks)}
    assert soonest_sentence(SolvingTimes(steps, 1_000)) == (
        "Graph values solve both tasks first, after 100 to 200 steps by the median seed; the best method without graph "
        "values needs 1.3 to 2.0 times as many (graph values, uniform exploration: 1.2 to 1.5)."
    )


def test_one_method_alone_is_no_comparison(tmp_path: Path) -> None:
    write_straight_runs(tmp_path, {"graph": 1.0})
    assert read_soonest(read_evidence(tmp_path), find_question("G1")) is None


def test_trials_of_constants_stand_with_the_best_first() -> None:
    def entry(label: str, area: float) -> dict[str, Any]:
        return {"method": label, "tasks": 2, "area under success": Interval(area, area - 0.1, area + 0.1)}

    verdict = Verdict("no verdict", "", table=[entry("ter, eta 0.5", 0.2), entry("graph, gap 3", 0.3)])
    (chart,) = trials(verdict, "t1")
    assert isinstance(chart, DotChart)
    assert [(entry.label, entry.dots[0].name) for entry in chart.categories] == [
        ("graph values (gap 3)", "graph"),
        ("TER (eta 0.5)", "ter"),
    ]
    assert trials(Verdict("no verdict", ""), "t1") == []


def test_trials_on_different_tasks_are_not_compared() -> None:
    both = ("doorkey", "unlock")
    where = {"graph, gap 3": ("unlock",), "graph, gap 10": ("unlock",), "ter, from good ends": ("doorkey",)}
    where |= dict.fromkeys(("per, per_alpha 0.4", "ebu, diffusion 1", "ebu, diffusion 0.5"), both)
    entries = [{"method": label, "tasks": 1, "area under success": Interval(0.3, 0.2, 0.4)} for label in where]
    by_task = [{"method": label, "task": f"minigrid/{task}"} for label, tasks in where.items() for task in tasks]
    first, second = trials(Verdict("no verdict", "", table=entries, more={"By task": by_task}), "t1")
    assert isinstance(first, DotChart)
    assert isinstance(second, DotChart)
    assert [entry.label for entry in first.categories] == [
        "PER (alpha 0.4)",
        "EBU (diffusion 1)",
        "EBU (diffusion 0.5)",
    ]
    assert first.title.endswith(", on DoorKey and Unlock")
    assert [entry.label for entry in second.categories] == ["graph values (gap 3)", "graph values (gap 10)"]
    assert second.title.endswith(", on Unlock")
    assert [first.name, second.name] == ["t1-trials", "t1-trials-2"]


def test_rounds_and_seeds_are_dots_not_lines() -> None:
    evidence = read_evidence(Path(__file__).parents[3] / "results")
    drawn = [*speeds(evidence), *coverage(evidence)]
    assert [chart.name for chart in drawn] == ["c11-sample", "c11-add", "c21-batches"]
    assert all(isinstance(chart, DotChart) for chart in drawn)
    assert [chart.named for chart in drawn] == [True, True, False]  # type: ignore[union-attr]
    assert list(drawn[0].looks) == [entry.dots[0].name for entry in drawn[0].categories]  # type: ignore[union-attr]
    rounds = {record["round"] for record in reported(evidence, "speed")}
    assert all(len(dots.values) == len(rounds) for entry in drawn[0].categories for dots in entry.dots)  # type: ignore[union-attr]
    unmixed = drawn[2].categories[0]  # type: ignore[union-attr]
    assert unmixed == DotCategory("no mixing", unmixed.dots)
    assert np.isinf(unmixed.dots[0].values).all()


@pytest.mark.parametrize("lost", [1, 8, 40])
def test_runs_that_never_get_there_are_drawn_within_the_picture(lost: int) -> None:
    dots = Dots("ter", [1e5, *[math.inf] * lost], math.inf)
    chart = DotChart("dots", "", "", [DotCategory("a", [dots])], x_shows=(0.0, 1e6), beyond="never")
    plt = pyplot("report")
    figure = figures._dots(plt, chart)
    (panel,) = figure.axes
    drawn = panel.collections[0].get_offsets()[:, 0]
    assert len(drawn) == 1 + lost
    assert drawn.max() < panel.get_xlim()[1]
    assert sorted(drawn)[1] > 1e6
    plt.close(figure)
