"""The documentation's site in Chromium, opened from disk: search works, and no page is wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from browser import DESKTOP, PHONE, TOO_WIDE, browser, keep, visit
from site_building import build_site

SIZES = {"desktop": DESKTOP, "phone": PHONE}
SHOWN = ("index", "get_started", "architecture", "reference/replay")
"""Pages whose screenshots are kept."""


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def site(running: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("name", SIZES)
def test_no_page_is_wider_than_the_screen(running: Any, site: Path, name: str) -> None:
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 30
    with visit(running, site / "index.html", size=SIZES[name], dark=name == "phone") as opened:
        for page in pages:
            opened.goto(page.as_uri())
            assert opened.evaluate(TOO_WIDE) == 0, page.relative_to(site)
            shown = page.relative_to(site).with_suffix("").as_posix()
            if shown in SHOWN:
                keep(opened, f"site-{name}-{shown.replace('/', '-')}")


def test_search_works_without_a_server(running: Any, site: Path) -> None:
    with visit(running, site / "reference" / "replay.html") as opened:
        opened.click(".md-search__input")
        opened.keyboard.type("renew_values")
        found = opened.locator(".md-search-result__link")
        found.first.wait_for()
        keep(opened, "site-search")
        links = found.evaluate_all("nodes => nodes.map(node => node.href)")
    assert any("/reference/replay.html" in link for link in links)
    pages = {Path(unquote(urlsplit(link).path)) for link in links}
    assert all(page.is_file() for page in pages)
