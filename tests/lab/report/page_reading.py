"""The report's page as a reader without a browser sees it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects what the checks look at; refuses tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.figures: list[str] = []
        self.badges: list[str] = []
        self.cards: dict[str, list[str]] = {}
        """By its title what a card says: the verdict, one sentence, perhaps a caution."""
        self.minis: list[str] = []
        self.data: dict[str, Any] = {}
        self.entries: list[list[str]] = []
        self._open: list[str] = []
        self._said: list[str] = []
        self._in: dict[str, str | None] = {}
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self._open.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(str(given["src"]))
        if tag == "link":
            self.loaded.append(str(given.get("href")))
        if tag == "figure":
            (self.minis if "data-mini" in given else self.figures).append(str(given.get("data-chart")))
        if tag == "article":
            self._said = []
        if "badge" in str(given.get("class")).split():
            self.badges.append(str(given["class"]).removeprefix("badge "))
        if tag == "tr":
            self.entries.append([])
        self._in = given if tag == "script" else {}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes something else"
        if tag == "article":
            verdict, title, *rest = self._said
            self.cards[title] = [verdict, *rest]
        self._in = {}

    def handle_data(self, data: str) -> None:
        if self._in.get("id") == "data":
            self.data = json.loads(data)
        elif "article" in self._open and data.strip():
            self._said.append(data)
        elif self._open and self._open[-1] in ("td", "th", "a", "span") and self.entries:
            self.entries[-1].append(data)


def check_page(page: Page) -> None:
    """Everything that holds without running the page: it is whole, loads nothing, and has data for each chart."""
    assert all(source.startswith("data:") for source in page.loaded), page.loaded
    assert not [link for link in page.links if "://" in link]
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.figures == list(page.data["charts"])
    assert set(page.minis) <= set(page.figures)
    for chart in page.data["charts"].values():
        assert list(chart["looks"]) == chart["lines"]
        if chart["kind"] == "dots":
            assert {dots["name"] for entry in chart["categories"] for dots in entry["dots"]} == set(chart["lines"])
            continue
        assert chart["facets"]
        for facet in chart["facets"]:
            for line in facet["series"]:
                assert len(line["x"]) == len(line["y"]) > 0
                assert len(line["low"]) == len(line["high"]) in (0, len(line["x"]))
                assert line["name"] in chart["looks"]
