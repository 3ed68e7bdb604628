"""The page in headless Chromium: it opens, the charts draw, the toggles work, the chain plays, nothing complains.

A script is put into a copy of the page. It uses the page as a reader would and writes down what it sees, which Chromium
then prints with the page. Where there is no Chromium the page is checked as text, which shows all but the scripts'
work; `make test-browser` insists on the real thing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from page_reading import Page, check_page

EARLY = """<script>
window.complaints = [];
window.addEventListener("error", (event) => window.complaints.push(String(event.message)));
for (const name of ["error", "warn"]) console[name] = (...words) => window.complaints.push(words.join(" "));
</script>"""

VISIT = """<script>
const seen = {};
const figures = [...document.querySelectorAll("figure[data-chart]")];
seen.charts = figures.map((figure) => [figure.dataset.chart, figure.querySelectorAll("[data-line]").length,
  figure.querySelectorAll(".legend button").length]);
seen.steps = [...document.querySelectorAll('figure[data-chart="c3-score"] svg text[text-anchor="middle"]')]
  .map((node) => node.textContent).filter((text) => /^\\d/.test(text));
const first = figures[0], button = () => first.querySelector(".legend button");
const lines = () => first.querySelectorAll("path.line").length;
seen.before = lines();
button().click();
seen.hidden = [lines(), button().getAttribute("aria-pressed")];
button().click();
seen.again = [lines(), button().getAttribute("aria-pressed")];
const select = first.querySelector("select");
const drawn = () => first.querySelector("svg").innerHTML;
const view = drawn();
select.value = "1";
select.dispatchEvent(new Event("change"));
seen.otherView = drawn() !== view;
const svg = first.querySelector("svg"), box = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 50 }));
seen.tip = first.querySelector(".tip").hidden ? "" : first.querySelector(".tip").textContent;
const player = document.getElementById("nchain-player");
const counts = () => [...player.querySelectorAll(".count")].map((node) => node.textContent);
const press = (text) => [...player.querySelectorAll("button")].find((node) => node.textContent.includes(text)).click();
seen.chainStart = counts();
press("+1");
seen.chainOne = [player.querySelector("output").textContent, counts()[0], player.querySelectorAll(".now").length];
press("+10"); press("+10");
seen.chainEnd = counts();
press("\\u22121"); press("\\u22121");
seen.chainBack = counts();
seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
seen.background = getComputedStyle(document.body).backgroundColor;
seen.complaints = window.complaints;
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.appendChild(out);
</script>"""


def chromium() -> str | None:
    """Return where Chromium is, None if there is none."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def visit(browser: str, page: Path, tmp_path: Path, *flags: str, size: str = "1200,900") -> dict[str, Any]:
    """Open the page, use it, and return what was seen."""
    text = page.read_text()
    copy = tmp_path / "visited.html"
    copy.write_text(text.replace("<head>", "<head>" + EARLY, 1).replace("</body>", VISIT + "</body>"))
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={size}",
        *flags,
        "--dump-dom",
        copy.as_uri(),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', printed, re.DOTALL)
    assert found, "the page's scripts did not come to their end"
    seen: dict[str, Any] = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return seen


def test_the_page_in_a_browser(folder: Path, tmp_path: Path) -> None:
    browser = chromium()
    page = Page((folder / "index.html").read_text())
    check_page(page)
    if browser is None:
        print("no Chromium: the page was checked as text; 'make test-browser' says what is missing")
        return
    seen = visit(browser, folder / "index.html", tmp_path)
    assert seen["complaints"] == []
    assert [name for name, _, _ in seen["charts"]] == page.figures
    for name, lines, buttons in seen["charts"]:
        assert lines == buttons == len(page.data["charts"][name]["facets"][0]["series"]), name
    assert seen["hidden"] == [seen["before"] - 1, "false"]
    assert seen["again"] == [seen["before"], "true"]
    assert seen["otherView"]
    assert seen["steps"] == ["500k", "1M", "1.5M", "2M", "2.5M", "3M"]
    assert "ter:" in seen["tip"]
    assert seen["chainStart"] == ["0 of 19"] * 7
    assert seen["chainOne"] == ["1 backup", "1 of 19", 7]
    assert seen["chainEnd"] == ["solved at 19"] * 7
    assert seen["chainBack"] == ["18 of 19"] * 7
    assert seen["wide"] == 0


@pytest.mark.parametrize("flags", [(), ("--blink-settings=preferredColorScheme=0",)])
def test_phones_and_the_dark(folder: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    style = (folder / "index.html").read_text()
    assert "prefers-color-scheme: dark" in style
    assert 'name="viewport"' in style
    browser = chromium()
    if browser is None:
        print("no Chromium: the page was checked as text; 'make test-browser' says what is missing")
        return
    seen = visit(browser, folder / "index.html", tmp_path, *flags, size="420,900")
    assert seen["complaints"] == []
    assert seen["wide"] <= 0
    assert seen["background"] == ("rgb(20, 24, 28)" if flags else "rgb(251, 250, 247)")
