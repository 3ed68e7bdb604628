"""The report from a results folder with known answers."""

from __future__ import annotations

import csv
import json
import math
import re
import tracemalloc
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_reading import Page, check_page

from backsweep.agent.palette import pyplot
from backsweep.lab.claims.evidence import left_bounds, read_evidence
from backsweep.lab.claims.groups import groups_for
from backsweep.lab.claims.question import NOT_RUN
from backsweep.lab.claims.questions import find_question
from backsweep.lab.report.answers import Answer, Report, _thresholds, make_report
from backsweep.lab.report.chart import Chart, Facet, Series
from backsweep.lab.report.cli import report_command
from backsweep.lab.report.figures import FEWEST_PER_PROCESS, MOST_BANDS, _lines, draw, draw_all
from backsweep.lab.report.markdown import BEGIN, END, block
from backsweep.lab.report.marked_text import replace_between, rewrite_between
from backsweep.lab.report.report_files import write_markdown, write_page
from backsweep.lab.report.sections import sentences
from backsweep.lab.report.tables import DIVERGED, readable, shown, side_by_side
from backsweep.lab.stats import Interval
from result_folders import write_run


def test_the_page_is_whole_and_says_the_known_verdicts(folder: Path) -> None:
    page = Page((folder / "index.html").read_text())
    check_page(page)
    assert list(page.cards)[:2] == ["C1. Backups to solve a chain", "C2. How fast values become right on a chain"]
    assert page.cards["C1. Backups to solve a chain"][0] == "reproduced"
    minigrid = page.cards["C3. MiniGrid: who learns best?"]
    assert minigrid[:2] == [
        "reproduced (2 of 7 tasks run)",
        "TER ends ahead of all 4 others on 2 of 2 tasks, behind one of them on none.",
    ]
    assert "TER minus each other method: final score by task, with 95% intervals" in minigrid
    assert page.cards["C4. Sokoban: who learns best?"][0] == "reproduced (4 of 7 tasks run)"
    assert "C11" in page.ids  # not run: no card, but its rule can be read
    assert not [title for title in page.cards if title.startswith("C11")]
    assert len([name for name in page.ids if re.fullmatch(r"C\d+", name)]) == 24
    assert "Of the 24 claims of the paper" in (folder / "index.html").read_text()
    assert page.ids.index("nchain-player") < page.ids.index("claims") < page.ids.index("C1")
    sokoban = ["c4-ahead", "c4-score", "c4-profile", "c4-lead-size", "c4-lead-density"]
    others = ["c5-ahead", "c5-score", "c5-profile", "c6-ahead", "c6-score", "c6-profile"]
    minigrid = ["c3-ahead", "c3-score", "c3-profile", "c3-success", "c3-value-error"]
    minigrid += ["c3-released-ahead", "c3-released-score", "c3-released-profile"]
    assert page.figures == ["c1-solved", "c2-error", *minigrid, *sokoban, *others, "c19-solved"]
    firsts = ["c1-solved", "c2-error", "c3-ahead", "c3-released-ahead", "c4-ahead", "c5-ahead", "c6-ahead"]
    assert page.minis == [*firsts, "c19-solved"]
    assert len(page.data["chain"]["views"]) == 2
    assert page.data["pictures"]["minigrid/doorkey"].startswith("data:image/png;base64,")


def test_one_file_alone_links_to_nothing_beside_it(report: Report, tmp_path: Path) -> None:
    page = Page(write_page(report, tmp_path / "deep" / "page.html").read_text())
    check_page(page)
    assert all(link.startswith("#") for link in page.links)


def test_pictures_and_tables_lie_beside_it(folder: Path) -> None:
    page = Page((folder / "index.html").read_text())
    for link in page.links:
        if not link.startswith("#"):
            assert (folder / link).stat().st_size > 50, link
    with open(folder / "verdicts.csv") as file:
        entries = {entry["id"]: entry for entry in csv.DictReader(file)}
    assert entries["C3"]["verdict"] == "reproduced"
    with open(folder / "tables" / "c3.csv") as file:
        first = next(csv.DictReader(file))
    assert float(first["difference"]) == pytest.approx(0.3, abs=1e-9)
    assert float(first["difference low"]) <= 0.3 + 1e-9
    with open(folder / "tables" / "c3-scores.csv") as file:
        scores = {(entry["measure"], entry["method"]): entry for entry in csv.DictReader(file)}
    assert float(scores["final score", "ter"]["iqm"]) == pytest.approx(0.82, abs=0.005)
    with open(folder / "tables" / "c3-steps.csv") as file:
        steps = {(entry["task"], entry["method"]): entry for entry in csv.DictReader(file)}
    # TER ends at 0.80 to 0.84 after 3,000,000 steps in a straight line, the others never come to 0.8.
    assert float(steps["minigrid/unlock", "ter"]["median steps"]) == 3_000_000.0
    assert steps["minigrid/unlock", "uer"]["median steps"] == "inf"


def test_successes_are_shown_seed_by_seed_where_they_are_known(report: Report, folder: Path) -> None:
    answer = next(answer for answer in report.answers if answer.question.id == "C3")
    assert {entry["task"] for entry in answer.successes} == {"minigrid/unlock"}
    (line,) = side_by_side(answer.successes)
    assert line["ter"] == "80 81 82 83 84"
    assert "80 81 82 83 84" in (folder / "index.html").read_text()


def test_tables_have_methods_in_the_order_of_the_legend_and_readable_numbers() -> None:
    entries = [{"task": "a", "method": name, "episodes that reach the goal": [0.5]} for name in ("uer", "ter", "graph")]
    assert list(side_by_side(entries)[0]) == ["percent on", "graph", "ter", "uer"]
    assert shown(Interval(0.000169, 4.31e-09, 0.000382)) == "0.000169 [0, 0.000382]"
    assert shown(Interval(0.5, 0.25, math.inf)) == "0.5 [0.25, never]"
    assert shown(Interval(0.0, 0.0, 0.0)) == "0 [0, 0]"


def test_details_say_what_was_found_first_and_call_things_by_their_titles(folder: Path) -> None:
    text = (folder / "index.html").read_text()
    details = text[text.index('id="C3"') :]
    assert (
        "<dt>Found</dt><dd>TER ends ahead of all 4 others on 2 of 2 tasks, behind one of them on none.</dd>" in details
    )
    assert "<summary>How it is decided. All 8 parts hold.</summary>" in details
    assert "2 of 7 tasks (DoorKey, Unlock)" in details
    assert readable("one per backup: ter 35 [35, 35], per 1,313 [1,186, 1,466]") == (
        "one per backup: TER 35 [35, 35], PER 1,313 [1,186, 1,466]"
    )
    assert readable("seconds/batch on minigrid/lavacrossing-hard.") == "seconds/batch on LavaCrossing-Hard."


def test_runs_whose_values_run_away_are_counted(tmp_path: Path) -> None:
    for method in ("uer", "per", "ebu", "discor", "ter"):
        for seed in range(100, 103):
            gone = 500.0 if (method, seed) == ("per", 101) else 0.0
            write_run(tmp_path, "minigrid/unlock", method, seed, 0.5, probe_q=-gone)
    answer = next(answer for answer in make_report(tmp_path).answers if answer.id == "C3")
    (line,) = side_by_side(answer.diverged)
    assert line["per"] == "1 of 3"
    assert line["ter"] == "0 of 3"
    # In the released code the wrong door of RedBlueDoors costs as much as a whole episode: one can cost 1,439 in all.
    for follows in ("paper", "released"):
        for method in ("uer", "per", "ebu", "discor", "ter"):
            for seed in range(100, 103):
                write_run(
                    tmp_path / "doors", "minigrid/redbluedoors", method, seed, 0.5, probe_q=-1000.0, settings=follows
                )
    answers = {answer.id: answer for answer in make_report(tmp_path / "doors").answers}
    assert answers["C3"].diverged
    assert not answers["C3 released"].diverged
    (tmp_path / "none").mkdir()
    write_run(tmp_path / "none", "minigrid/unlock", "ter", 100, 0.5)
    assert not any(answer.diverged for answer in make_report(tmp_path / "none").answers)


def test_values_run_away_upwards_and_downwards_by_their_own_bounds() -> None:
    bounds = (-647.0, 312.0)
    inside = np.array([-600.0, math.nan, 311.0])
    assert not left_bounds(inside, bounds)
    assert left_bounds(np.append(inside, 320.0), bounds)  # below 647, and above what any episode pays
    assert left_bounds(np.append(inside, -700.0), bounds)
    assert left_bounds(np.array([math.inf]), bounds)
    # A discounted return may be smaller than any return is.
    assert not left_bounds(np.array([0.3, 0.9]), (0.5, 1.0))


def test_runs_that_follow_the_released_code_have_an_answer_of_their_own(report: Report, folder: Path) -> None:
    found = {answer.id: answer for answer in report.answers if answer.question.id == "C3"}
    assert found["C3"].verdict.outcome == "reproduced"
    released = found["C3 released"]
    assert released.verdict.outcome == "not reproduced"
    assert "the runs follow the code" in released.verdict.summary
    assert {entry["settings"] for entry in released.sources} == {"released"}
    assert {entry["settings"] for entry in found["C3"].sources} == {"paper"}
    assert (folder / "figures" / "c3-released-score.png").exists()
    assert 'id="C3-released"' in (folder / "index.html").read_text()
    # TER, EBU and others belong to more questions, which nobody asked about the released code.
    assert [answer.id for answer in report.answers if answer.follows == "released"] == ["C3 released"]


def test_the_reader_is_told_about_torn_lines_and_what_was_left_out(report: Report, folder: Path) -> None:
    text = "\n".join(report.remarks)
    assert "1 line could not be read" in text
    assert "1 run with other settings is not compared" in text
    assert "its configuration cannot be read" in text
    page = (folder / "index.html").read_text()
    assert "1 line could not be read" in page
    sources = next(answer for answer in report.answers if answer.question.id == "C3").sources
    assert {entry["seeds"] for entry in sources} == {"100, 101, 102, 103, 104"}


def test_runs_with_other_settings_have_one_line_per_task(report: Report) -> None:
    left_out = [
        "b: 2 runs with other settings (aa) are not compared",
        "a: 1 runs",
        "b: 3 runs with other settings (bb) are not compared",
    ]
    found = Report([], replace(report.evidence, left_out=left_out, torn={}))
    assert found.remarks == ["a: 1 runs", "b: 5 runs with other settings are not compared"]


def test_the_first_screen_counts_every_claim_once(report: Report) -> None:
    assert sentences(report)[-1].startswith("Of the 24 claims of the paper on Topological Experience Replay: ")
    only = [replace(answer, follows="ours") if answer.id == "C4" else answer for answer in report.answers]
    said = sentences(Report(only, report.evidence))[-1]
    assert said.startswith("Of the 24 claims")
    assert "1 run with other settings only" in said


def test_markdown_goes_between_its_markers(report: Report, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    path.write_text(f"by hand\n{BEGIN}\nbefore this\n{END}\nbelow\n")
    write_markdown(report, path)
    text = path.read_text()
    assert text.startswith("by hand\n")
    assert text.endswith(f"{END}\nbelow\n")
    assert "before this" not in text
    assert "| C3. MiniGrid: who learns best? | **reproduced on 2 of 7 tasks** | TER ends ahead of all 4 others" in text
    assert "Not run yet: C7, C8" in text
    assert not (tmp_path / "images").exists()  # it shows none
    path.write_text(f"![who](images/c3-ahead.png)\n{BEGIN}\n{END}\n")
    write_markdown(report, path)
    assert [picture.name for picture in (tmp_path / "images").iterdir()] == ["c3-ahead.png"]
    (tmp_path / "images" / "c3-ahead.png").write_text("old")
    path.write_text(f"{BEGIN}\n{END}\n")  # another document may show it
    write_markdown(report, path)
    assert (tmp_path / "images" / "c3-ahead.png").stat().st_size > 1_000
    assert replace_between(text, BEGIN, END, block(report)) == text
    for refused in ("nothing", f"{END}\n{BEGIN}\n"):
        path.write_text(refused)
        with pytest.raises(ValueError, match="must hold the lines"):
            write_markdown(report, path)
        with pytest.raises(ValueError, match=r"results\.md: .* must hold the lines"):
            rewrite_between(path, BEGIN, END, "text")
        assert path.read_text() == refused


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder of results"):
        make_report(tmp_path / "nowhere")


def test_a_thousand_runs_are_read_as_a_stream(tmp_path: Path) -> None:
    for seed in range(100, 300):
        for method in ("ter", "uer", "per", "ebu", "discor"):
            write_run(tmp_path, "minigrid/doorkey", method, seed, 0.5 if method != "ter" else 0.7, evaluations=30)
    found = make_report(tmp_path)
    assert next(answer for answer in found.answers if answer.question.id == "C3").verdict.outcome == "reproduced"
    # A long record file: what is kept does not grow with what is passed over.
    path = next(tmp_path.rglob("records.jsonl"))
    with open(path, "ab") as file:
        file.write((b'{"kind":"training","step":1,"loss":' + b"1" * 1000 + b"}\n") * 30_000)
    (tmp_path / "alone").mkdir()
    path.parent.rename(tmp_path / "alone" / "run")
    tracemalloc.start()
    read_evidence(tmp_path / "alone")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000


def test_scores_without_bounds_have_no_threshold(tmp_path: Path) -> None:
    for method in ("uer", "ter"):
        for seed in range(100, 103):
            folder = write_run(tmp_path, "lunarlander", method, seed, 200.0, cell=[0.1], encoder="projection")
            records = folder / "records.jsonl"
            lines = [json.loads(line) for line in records.read_text().splitlines()]
            plain = [{**line, "normalised_return": None} for line in lines]
            records.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in plain))
    found = read_evidence(tmp_path)
    assert not any(run.bounded for run in found.runs)
    question = find_question("C23")
    assert groups_for(question, found)
    assert _thresholds(question, found) == []


def test_the_results_document_says_what_the_records_say_and_is_short() -> None:
    root = Path(__file__).parents[3]
    verdicts = (root / "docs" / "verdicts.md").read_text()
    assert replace_between(verdicts, BEGIN, END, block(make_report(root / "results"))) == verdicts
    pages = sorted((root / "docs").glob("results*.md"))
    assert len(pages) >= 5
    for page in pages:
        assert len(page.read_text().split()) <= 2_000


@pytest.mark.parametrize(("count", "bands"), [(MOST_BANDS, MOST_BANDS), (MOST_BANDS + 1, 0)])
def test_bands_of_many_lines_are_left_out(count: int, bands: int) -> None:
    lines = [Series(f"line {place}", [0.0, 1.0], [0.1 * place] * 2, [0.0, 0.0], [1.0, 1.0]) for place in range(count)]
    chart = Chart("many", "a title", "steps", "score", [Facet("a task", lines)])
    plt = pyplot("report")
    figure = _lines(plt, chart)
    assert len(figure.axes[0].collections) == bands
    plt.close(figure)


def test_pictures_can_be_drawn_by_several_processes(tmp_path: Path) -> None:
    line = Series("ter", [0.0, 1e6], [0.0, 1.0], [0.0, 0.9], [0.1, 1.0])
    charts = {
        tmp_path / f"{place}.png": Chart(f"{place}", "a title", "steps", "score", [Facet("a task", [line])])
        for place in range(2 * FEWEST_PER_PROCESS)
    }
    draw_all(charts, processes=2)
    first = tmp_path / "first.png"
    draw(charts[tmp_path / "0.png"], first)
    assert all(path.read_bytes() == first.read_bytes() for path in charts)


def test_a_warning_about_diverged_runs_says_whether_they_are_graph_values() -> None:
    def caution(graph: int, rival: int) -> str:
        entries = [{"method": "graph", DIVERGED: graph, "runs": 5}, {"method": "ter", DIVERGED: rival, "runs": 5}]
        return Answer(find_question("G1"), NOT_RUN, "ours", diverged=entries).caution

    assert caution(0, 3) == "Values diverged in 3 of 10 runs, in none of graph values."
    assert caution(1, 3) == "Values diverged in 4 of 10 runs."
    assert caution(0, 1) == ""


@pytest.mark.parametrize(
    ("seeds", "said"), [((10_000,), "the run has a tuning seed"), ((10_000, 10_001), "all 2 runs")]
)
def test_a_folder_of_tuning_runs_alone_is_named_as_such(
    seeds: tuple[int, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in seeds:
        write_run(tmp_path / "results", "nchain-6", "ter", seed, 0.5)
    assert report_command(Namespace(results=tmp_path / "results", out=tmp_path / "page.html", markdown=None)) == 0
    printed = capsys.readouterr()
    assert said in printed.out
    assert "belongs to a question" not in printed.out
    assert printed.err.startswith(f"reading {tmp_path / 'results'} ...\ndeciding ")
