"""Tables that a measurement writes into a page, between two marked lines."""

from __future__ import annotations

from pathlib import Path


def rewrite_between(path: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marked lines of a page, in place of what is there."""
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path} must hold the lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
