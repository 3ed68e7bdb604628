"""Generated text between two marked lines of a page that is otherwise written by hand."""

from __future__ import annotations

from pathlib import Path


def replace_between(page: str, begin: str, end: str, text: str) -> str:
    """Return a page with the text between two marked lines replaced; a page without them is refused."""
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page must hold the lines {begin!r} and {end!r}, in this order")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def rewrite_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marked lines of a file."""
    try:
        page = replace_between(path.read_text(encoding="utf-8"), begin, end, text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    path.write_text(page, encoding="utf-8")
