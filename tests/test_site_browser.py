"""The documentation's site in Chromium, opened from disk: search works, and no page is wider than the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from browser import DESKTOP, PHONE, TOO_WIDE, keep, visit

SIZES = {"phone": PHONE, "desktop": DESKTOP}
SHOWN = ("index", "get_started", "architecture", "reference/replay")
"""Pages whose screenshots are kept."""


def test_no_page_is_wider_than_the_screen(running: Any, site: Path) -> None:
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 30
    with visit(running, site / "index.html", size=PHONE, dark=True) as opened:
        for page in pages:
            opened.goto(page.as_uri())
            shown = page.relative_to(site).with_suffix("").as_posix()
            for name, (width, height) in SIZES.items():
                opened.set_viewport_size({"width": width, "height": height})
                assert opened.evaluate(TOO_WIDE) == 0, f"{shown} on a {name}"
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
