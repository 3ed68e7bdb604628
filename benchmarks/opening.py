"""How long a page takes to open in Chromium, from the start of loading to the first complete picture."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from statistics import median

REPEATS = 5
NAMES = ("chromium", "chromium-browser", "google-chrome")
READY = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  done(performance.now()))))"""
"""Resolves two frames after the scripts have run, when everything is painted."""


def seconds_to_open(page: Path) -> dict[str, float]:
    """Return the median and the largest of five times to open a page from disk, each in a new window."""
    from playwright.sync_api import sync_playwright

    names = [os.environ.get("CHROMIUM", ""), *NAMES]
    places = [shutil.which(name) for name in names if name]
    found: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(filter(None, places), None), args=["--no-sandbox"])
        for _ in range(REPEATS):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            opened = context.new_page()
            opened.goto(page.as_uri())
            found.append(float(opened.evaluate(READY)) / 1000)
            context.close()
        version = browser.version
        browser.close()
    size = page.stat().st_size / 1e6
    print(f"Chromium {version} opens {size:.1f} MB in {median(found):.2f} s, {max(found):.2f} s at most")
    return {"median": round(median(found), 3), "most": round(max(found), 3), "megabytes": round(size, 2)}
