"""The report in Chromium, on a desktop and on a phone, light and dark: it is used as a reader would.

Without a browser these tests are skipped; `test_report.py` checks the page as text. `make test-browser` insists on the
real thing, and keeps screenshots.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backsweep.lab.report.answers import make_report
from backsweep.lab.report.report_files import write_page
from browser import DESKTOP, FAINT, NAMELESS, PHONE, TOO_WIDE, keep, visit
from result_folders import write_straight_runs

UNFOLD = "() => { document.querySelectorAll('details').forEach((node) => { node.open = true; }); backsweep.drawAll(); }"
SIZES = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return folder / "index.html"


def test_the_first_screen_is_the_message(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        keep(opened, "desktop-first")
        assert opened.locator("#top .lead li").count() >= 1
        assert opened.locator("#nchain-player").bounding_box()["y"] < DESKTOP[1]
        # Only what is seen is drawn: the first screen and the cards.
        cards = opened.locator(".card").count()
        assert (
            opened.evaluate("backsweep.figures.length")
            == cards
            == opened.locator(".card figure svg >> nth=0").count() * cards
        )
        assert not opened.locator(".claim[open]").count()


def test_how_soon_each_method_solves_each_task(running: Any, tmp_path: Path) -> None:
    write_straight_runs(tmp_path / "results", {"graph": 1.0, "ter": 0.5, "uer": 0.95})
    alone = write_page(make_report(tmp_path / "results"), tmp_path / "page.html")
    for name, size in SIZES.items():
        with visit(running, alone, size=size) as opened:
            keep(opened, f"{name}-soonest")
            entries = opened.locator("#soonest svg[role=img]")
            assert entries.count() == 2
            assert entries.first.get_attribute("aria-label") == (
                "DoorKey: graph values 900; TER never (not within 1,000), 0 of 3 runs get there; uniform 1,000"
            )
            assert opened.locator("#soonest .dot-label img").count() == 2
            assert opened.locator("#soonest g[data-line=graph] circle").count() == 6
            (entries.first.tap if size == PHONE else entries.first.hover)()
            assert "graph values: 900" in opened.locator("#soonest .tip").inner_text()
            opened.locator("#soonest .legend button", has_text="uniform").click()
            assert opened.locator("#soonest g[data-line=uer]").count() == 0
            assert opened.evaluate(TOO_WIDE) == 0


def test_a_card_leads_to_its_details_and_charts_work_there(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.get_by_role("link", name="Details of C3", exact=True).click()
        claim = opened.locator("#C3")
        opened.locator("#C3[open]").wait_for()
        curves = claim.locator("figure[data-chart=c3-score]")
        curves.scroll_into_view_if_needed()
        curves.locator("svg").first.wait_for()
        assert curves.locator("select").input_value() == "all"  # the verdict is about all tasks
        assert curves.locator(".panel").count() == 2
        assert curves.locator(".panel img").count() == 2
        steps = curves.locator(".panel").first.locator(".tick-x").all_text_contents()
        assert [text for text in steps if text != "0"] == ["500k", "1M", "1.5M", "2M", "2.5M", "3M"]
        lines = curves.locator(".panel").first.locator("path.line")
        before = lines.count()
        button = curves.locator(".legend button", has_text="PER")
        button.click()
        assert (lines.count(), button.get_attribute("aria-pressed")) == (before - 1, "false")
        button.click()
        assert (lines.count(), button.get_attribute("aria-pressed")) == (before, "true")
        legend = curves.locator(".legend button").all_inner_texts()
        assert legend == ["TER", "TER-shuffled", "uniform", "PER", "EBU", "DisCor"]
        keep(opened, "desktop-claim")


def test_the_charts_of_a_claim_show_the_same_task(running: Any, tmp_path: Path) -> None:
    finals = {"ter": 0.9, "uer": 0.5, "per": 0.4, "ebu": 0.3, "discor": 0.2}
    write_straight_runs(tmp_path / "results", finals, settings="paper")
    alone = write_page(make_report(tmp_path / "results"), tmp_path / "page.html")
    with visit(running, alone) as opened:
        opened.evaluate(UNFOLD)
        score, success = (opened.locator(f"#C3 figure[data-chart=c3-{name}]") for name in ("score", "success"))
        assert [success.locator(".panel").count(), score.locator(".panel").count()] == [2, 2]
        score.locator("select").select_option(label="Unlock, 15 runs")
        assert [success.locator(".panel").count(), score.locator(".panel").count()] == [0, 0]
        assert success.locator("select").input_value() == score.locator("select").input_value() == "1"
        success.locator("select").select_option(label="all 2 tasks")
        assert score.locator(".panel").count() == 2


def test_another_claim_keeps_its_task(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.evaluate(UNFOLD)
        assert opened.locator("#C4 figure[data-chart=c4-score] .panel").count() == 4
        opened.locator("#C4 figure[data-chart=c4-score] select").select_option(label="Sokoban 6x6-1, 20 runs")
        assert opened.locator("#C4 figure[data-chart=c4-score] .panel").count() == 0
        assert opened.locator("#C5 figure[data-chart=c5-score] select").input_value() == "all"


def test_values_are_shown_by_mouse_by_tap_and_by_keys(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.evaluate(UNFOLD)
        chart = opened.locator("#C1 figure[data-chart=c1-solved]")
        chart.locator("svg").hover()
        assert "TER:" in chart.locator(".tip").inner_text()
        opened.mouse.move(5, 5)
        assert chart.locator(".tip").is_hidden()
        chart.locator("svg").focus()
        opened.keyboard.press("ArrowLeft")
        assert "EBU:" in chart.locator(".tip").inner_text()
        opened.keyboard.press("Escape")
        assert chart.locator(".tip").is_hidden()
        profile = opened.locator("#C5 figure[data-chart=c5-profile]")
        assert "EBU" in profile.locator(".alike").inner_text()
    with visit(running, page, size=PHONE) as opened:
        opened.evaluate(UNFOLD)
        chart = opened.locator("#C1 figure[data-chart=c1-solved]")
        chart.locator("svg").tap()
        assert "TER:" in chart.locator(".tip").inner_text()  # and stays when the finger is gone
        opened.locator("h1").tap()
        assert chart.locator(".tip").is_hidden()


def test_the_chain_can_be_stepped_through(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        player = opened.locator("#nchain-player")
        counts = player.locator(".count")
        assert counts.all_inner_texts() == ["solved at 19"] * 7  # begins where the first method has solved it
        player.get_by_role("button", name="back to the start").click()
        assert counts.all_inner_texts() == ["0 of 19"] * 7
        player.get_by_role("button", name="one backup on").click()
        assert player.locator("output").inner_text() == "1 backup"
        assert counts.first.inner_text() == "1 of 19"
        assert player.locator(".now").count() == 7
        player.get_by_role("button", name="ten backups on").click()
        player.get_by_role("slider", name="backups").fill("19")
        assert counts.all_inner_texts() == ["solved at 19"] * 7
        player.get_by_role("button", name="one backup back").click()
        assert counts.all_inner_texts() == ["18 of 19"] * 7
        assert player.locator(".name").first.inner_text() == "TER"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", SIZES)
def test_nothing_is_too_wide_too_faint_or_without_a_name(running: Any, page: Path, name: str, dark: bool) -> None:
    with visit(running, page, size=SIZES[name], dark=dark) as opened:
        shade = "dark" if dark else "light"
        assert opened.evaluate(TOO_WIDE) == 0
        assert opened.evaluate(FAINT) == []
        keep(opened, f"{name}-{shade}", whole=True)
        opened.evaluate(UNFOLD)
        assert opened.evaluate(TOO_WIDE) == 0
        assert opened.evaluate(FAINT) == []
        assert opened.evaluate(NAMELESS) == []
        keep(opened, f"{name}-{shade}-unfolded")
        expected = "rgb(18, 22, 26)" if dark else "rgb(247, 246, 242)"
        assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == expected


def test_wide_tables_scroll_by_themselves_and_say_so(running: Any, page: Path) -> None:
    with visit(running, page, size=PHONE) as opened:
        opened.evaluate(UNFOLD)
        opened.wait_for_function("document.querySelector('#C3 .wide.scrolls')")
        table = opened.locator("#C3 .wide.scrolls").first
        assert "scroll sideways" in table.evaluate("(node) => getComputedStyle(node, '::before').content")
        assert table.get_attribute("tabindex") == "0"
        table.evaluate("(node) => { node.scrollLeft = 1e6; }")
        opened.wait_for_function("(node) => node.classList.contains('at-end')", arg=table.element_handle())
        aligned = opened.evaluate(
            "[...document.querySelectorAll('th.number')].every((node) => getComputedStyle(node).textAlign === 'right')"
        )
        assert aligned
        assert opened.locator("th.number").count() > 5


def test_the_contents_mark_where_the_reader_is(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        current = "document.querySelector('#contents [aria-current]').hash"
        assert opened.evaluate(current) == "#top"
        for place in opened.evaluate("[...document.querySelectorAll('#contents li a')].map((link) => link.hash)"):
            opened.locator(f"#contents li a[href='{place}']").click()
            opened.wait_for_function(f"{current} === '{place}'")
            shown = opened.locator("#contents [aria-current]").bounding_box()
            assert 0 <= shown["y"] <= DESKTOP[1] - shown["height"]
        opened.evaluate("scrollTo(0, 0)")
        opened.wait_for_function(f"{current} === '#top'")


def test_no_number_touches_the_next_column_and_no_label_is_cut(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.evaluate(UNFOLD)
        gap = opened.evaluate("""Math.min(...[...document.querySelectorAll("td.number + td:not(.number)")]
            .map((cell) => parseFloat(getComputedStyle(cell).paddingLeft)))""")
        assert 8 <= gap < 100
        cut = opened.evaluate("""[...document.querySelectorAll(".plot svg")].flatMap((chart) => {
            const { left, right } = chart.getBoundingClientRect();
            return [...chart.querySelectorAll("text")].filter((text) => {
              const box = text.getBoundingClientRect();
              return box.left < left - 0.5 || box.right > right + 0.5;
            }).map((text) => text.textContent);
        })""")
        assert cut == []


def test_the_contents_on_a_phone(running: Any, page: Path) -> None:
    with visit(running, page, size=PHONE) as opened:
        menu = opened.get_by_role("button", name="Contents")
        assert opened.locator("#contents").is_hidden()
        menu.tap()
        assert menu.get_attribute("aria-expanded") == "true"
        keep(opened, "phone-contents")
        opened.locator("#contents a[href='#C11']").tap()  # not run: folded twice
        opened.locator("#C11[open]").wait_for()
        assert opened.locator("#contents").is_hidden()
