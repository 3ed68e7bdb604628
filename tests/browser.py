"""Pages in a real browser: Chromium by Playwright, the system's one or Playwright's own.

Without a Chromium tests of pages are skipped; `make test-browser` installs one, and keeps screenshots.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 90_000  # milliseconds: a machine with much else to do is slow, not wrong
DESKTOP, PHONE = (1280, 900), (390, 844)
SOFTWARE_GL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
"""WebGL without a GPU."""
SHOTS = "BROWSER_SHOTS"
"""The folder that keeps screenshots; `make test-browser` sets it."""

NAMELESS = """() => {
  const label = (node) => node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent || "";
  const named = (node) => label(node).trim();
  return [...document.querySelectorAll("button, select, input, a, summary, [role=img], [role=region]")]
    .filter((node) => !named(node)).map((node) => node.outerHTML.slice(0, 120));
}"""
"""Things that a screen reader has no name for."""

FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement, style = getComputedStyle(node);
    if (!text.data.trim() || !node.checkVisibility() || node.closest("script, style, noscript, .cell")) continue;
    const ink = parse(node instanceof SVGElement ? style.fill : style.color), paper = behind(node);
    const [low, high] = [light(ink), light(paper)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    if ((high + 0.05) / (low + 0.05) < (large ? 3 : 4.5)) found.push(`${text.data.trim()}: ${ink} on ${paper}`);
  }
  return found;
}"""
"""Visible text whose contrast is below WCAG's AA."""

TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""Pixels by which the page is wider than the screen."""


def chromium(playwright: Any) -> str | None:
    """Return where Chromium is: what CHROMIUM names, the system's, or Playwright's own; None if there is none."""
    names = [os.environ.get("CHROMIUM", ""), *NAMES]
    system = next((found for name in names if name and (found := shutil.which(name))), None)
    if system is not None:
        return system
    own = str(playwright.chromium.executable_path)
    return own if Path(own).exists() else None


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a browser. Without one the test is skipped, or fails where `make test-browser` runs it."""
    sync = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install '.[browser]'")
    with sync.sync_playwright() as playwright:
        place = chromium(playwright)
        if place is None:
            assert SHOTS not in os.environ, "there is no Chromium; set CHROMIUM to its path"
            pytest.skip("no Chromium: install the system's, set CHROMIUM to its path, or run 'make test-browser'")
        running = playwright.chromium.launch(executable_path=place, args=["--no-sandbox", *SOFTWARE_GL])
        yield running
        running.close()


@contextmanager
def visit(running: Any, page: Path | str, *, size: tuple[int, int] = DESKTOP, dark: bool = False) -> Iterator[Any]:
    """Yield an opened file or address; what the page complains about, or asks another place for, fails the test."""
    phone = size == PHONE
    context = running.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        is_mobile=phone,
        has_touch=phone,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    address = page.as_uri() if isinstance(page, Path) else page
    own = ("file:", "data:", "blob:") if isinstance(page, Path) else (address, "data:", "blob:")
    complaints: list[str] = []
    opened.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request",
        lambda request: None if request.url.startswith(own) else complaints.append(request.url),
    )
    opened.goto(address)
    yield opened
    context.close()
    assert complaints == []


def keep(opened: Any, name: str, *, whole: bool = False) -> None:
    """Keep a screenshot where BROWSER_SHOTS says."""
    if folder := os.environ.get(SHOTS):
        Path(folder).mkdir(parents=True, exist_ok=True)
        opened.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=whole)
