"""One self-contained HTML file with a graph."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int
from backsweep.replay import Replay
from backsweep.view.scene import MOST_STATES, Scene, make_scene

ALIGNMENT = 8
KINDS = {"float32": "Float32Array", "uint32": "Uint32Array", "int32": "Int32Array", "uint16": "Uint16Array"}
KINDS |= {"uint8": "Uint8Array"}


def pack(arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes, dict[str, Any]]:
    """Return the arrays as one block, and a table with each one's type in JavaScript, offset and shape."""
    blocks, table, place = [], {}, 0
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        table[name] = {"type": KINDS[array.dtype.name], "at": place, "shape": list(array.shape)}
        data = little.tobytes()
        blocks.append(data + bytes(-len(data) % ALIGNMENT))
        place += len(blocks[-1])
    return b"".join(blocks), table


def packed_text(data: bytes) -> str:
    """Return bytes compressed, in base64."""
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()


def json_text(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("data.js", "renderer.js", "camera.js", "colours.js", "details.js", "search.js", "sweep.js", "view.js")
PLACE = re.compile(r"\{\{([A-Z]+)\}\}")
FRAME = (
    '<iframe srcdoc="{page}" title="{title}" style="width:100%;height:{height}px;border:0;border-radius:8px" '
    'sandbox="allow-scripts"></iframe>'
)


class GraphPage:
    """A page with a replay's graph. Notebooks display it; elsewhere use `save` or `open`."""

    def __init__(self, text: str, words: dict[str, Any], height: int = 640) -> None:
        self._text = text
        self._height = height
        self.words = words
        """Facts about the page: title, rows, states, edges, ends, and how many of them are shown."""

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        shown, states = self.words["shown"], self.words["states"]
        return f"GraphPage({self.words['title']!r}, {shown:,} of {states:,} states)"

    def _repr_html_(self) -> str:
        page, title = html.escape(self._text, quote=True), html.escape(self.words["title"], quote=True)
        return FRAME.format(page=page, title=title, height=self._height)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._text, encoding="utf-8")
        return file

    def open(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, show it in a browser, and return its path."""
        file = self.save(path)
        webbrowser.open(file.resolve().as_uri())
        return file


def graph_page(
    replay: Replay,
    *,
    title: str = "replay graph",
    action_names: Sequence[str] | None = None,
    most_states: int = MOST_STATES,
    height: int = 640,
) -> GraphPage:
    """Return a page with the graph of a replay, which is not changed; see `Replay.view`.

    Examples
    --------
    >>> graph_page(replay, title="my run").save("graph.html")  # doctest: +SKIP
    """
    for name, number in (("most_states", most_states), ("height", height)):
        if not is_int(number) or number < 1:
            raise ValueError(f"{name} must be an int of 1 or more, got {number!r}")
    if not isinstance(title, str):
        raise TypeError(f"title must be a str, got {title!r:.200}")
    if action_names is not None and (isinstance(action_names, str) or not isinstance(action_names, Iterable)):
        raise TypeError(f"action_names must be a list of names or None, got {action_names!r:.200}")
    if not len(replay):
        raise ValueError("the replay is empty, so there is no graph to view")
    scene = make_scene(replay, title=title, action_names=action_names, most_states=most_states)
    return GraphPage(page_text(scene), scene.words, height)


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (ASSETS / name).read_text(encoding="utf-8")


def page_text(scene: Scene) -> str:
    """Return the page of a scene."""
    data, table = pack(scene.arrays)
    return filled_page(
        "view.html",
        title=html.escape(scene.words["title"]),
        style=("view.css",),
        scripts=SCRIPTS,
        words=json_text({**scene.words, "arrays": table}),
        data=packed_text(data),
    )


def filled_page(
    name: str, *, title: str, style: Sequence[str], scripts: Sequence[str], words: str, data: str = ""
) -> str:
    """Return a filled page template; `title` and `words` must be escaped."""
    fields = {
        "TITLE": title,
        "STYLE": "\n".join(asset(file) for file in style),
        "WORDS": words,
        "SCRIPT": "\n".join(asset(file) for file in scripts),
        "DATA": data,
    }
    return PLACE.sub(lambda found: fields[found[1]], asset("head.html") + asset(name))
