"""The page of a graph in Chromium, on a desktop and on a phone: drawn, pointed at, searched, played through.

Without a browser these tests are skipped; `test_page.py` checks the page as text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from view_replays import played

from backsweep import GraphValues, Replay, Topological
from backsweep.tasks import find_task
from browser import DESKTOP, FAINT, NAMELESS, PHONE, TOO_WIDE, keep, visit

READY = "() => document.getElementById('waiting').hidden"
PAINTED = """() => {
  const { canvas } = view, copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const seen = context.getImageData(0, 0, copy.width, copy.height).data, colours = new Set();
  for (let i = 0; i < seen.length; i += 4) colours.add(seen[i] << 16 | seen[i + 1] << 8 | seen[i + 2]);
  return colours.size;
}"""
"""How many colours the drawing has."""
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    replay = played("minigrid/simplecrossing-easy", 3_000, values=GraphValues())
    names = find_task("minigrid/simplecrossing-easy").action_names
    replay.renew_values(lambda states: np.zeros((len(states), len(names))))
    return replay.view(title="SimpleCrossing", action_names=names).save(tmp_path_factory.mktemp("view") / "graph.html")


@pytest.mark.parametrize(("name", "size", "dark"), [("desktop", DESKTOP, False), ("phone", PHONE, True)])
def test_the_graph_is_drawn_and_can_be_read(
    running: Any, page: Path, name: str, size: tuple[int, int], dark: bool
) -> None:
    with visit(running, page, size=size, dark=dark) as opened:
        opened.wait_for_function(READY)
        opened.evaluate(FRAME)
        keep(opened, f"view-{name}")
        assert opened.evaluate(PAINTED) > 50
        assert opened.evaluate(TOO_WIDE) <= 0
        opened.evaluate("view.choose(view.data.distance.findIndex((steps) => steps === 2))")
        assert opened.locator("#details canvas.picture").is_visible()
        assert "forward" in opened.locator("#details table").inner_text()
        keep(opened, f"view-{name}-state")
        assert opened.evaluate(NAMELESS) == []
        assert opened.evaluate(FAINT) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_both_discs_have_their_label(running: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    # Two corridors: one with an end, and a longer one without.
    replay = Replay(gym.spaces.Discrete(40), gym.spaces.Discrete(2), 100, Topological())
    replay.extend(np.arange(11), np.zeros(10, np.int64), np.zeros(10), terminated=True)
    replay.extend(np.arange(11, 40), np.zeros(28, np.int64), np.zeros(28), truncated=True)
    page = replay.view(title="two").save(tmp_path / "two.html")
    with visit(running, page, size=size) as opened:
        opened.wait_for_function(READY)
        opened.evaluate(FRAME)
        labels = opened.locator("#labels span")
        assert [text.split()[0] for text in labels.all_inner_texts()] == ["ends", "no"]
        bar = opened.locator("footer").bounding_box()["y"]
        for place in range(2):
            box = labels.nth(place).bounding_box()
            assert box["y"] + box["height"] <= bar
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]


def test_pointing_at_a_state_shows_it_and_a_click_keeps_it(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.wait_for_function(READY)
        state = opened.evaluate("view.data.flags.findIndex((flags) => flags & 1)")
        x, y = opened.evaluate(
            "(state) => view.camera.toScreen(view.data.position[2 * state], view.data.position[2 * state + 1])", state
        )
        opened.mouse.move(x, y)
        assert opened.locator("#tip strong").inner_text().startswith("End ")
        opened.mouse.down()
        opened.mouse.up()
        assert opened.locator("#details h2").inner_text().startswith("End ")
        opened.keyboard.press("Escape")
        assert opened.locator("#details").is_hidden()


def test_search_keys_and_zoom(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.wait_for_function(READY)
        found = opened.locator("#found")
        search = opened.locator("#search input")
        search.fill("end")
        ends = opened.evaluate("view.data.flags.reduce((sum, flags) => sum + (flags & 1), 0)")
        assert found.inner_text() == f"{ends} state" + ("s" if ends != 1 else "")
        search.fill("distance = 3 visits >= 1")
        assert int(found.inner_text().split()[0].replace(",", "")) > 0
        search.press("Enter")
        search.fill("sideways")
        assert found.inner_text().startswith("Try a state")
        search.fill("")
        opened.locator("#graph").focus()
        before = opened.evaluate("view.camera.scale")
        opened.keyboard.press("+")
        assert opened.evaluate("view.camera.scale") > before
        opened.keyboard.press("n")
        assert opened.locator("#details").is_visible()
        opened.keyboard.press("0")
        opened.select_option("#colour", "visits")
        assert "stored visits" in opened.locator("#legend").inner_text()


def test_the_sweep_plays_from_the_ends(running: Any, page: Path) -> None:
    with visit(running, page) as opened:
        opened.wait_for_function(READY)
        dim = "() => view.colours.filter((part, i) => i % 4 === 3 && part < 255).length"
        assert opened.evaluate(dim) == 0
        assert opened.locator(".newest").is_hidden()
        opened.evaluate("view.player.go(1)")
        first = opened.evaluate(dim)
        assert first > 0
        assert opened.locator("#played").inner_text().startswith("sweep 1, batch 1 of ")
        assert opened.locator(".newest").is_visible()
        opened.evaluate("view.player.go(view.player.batches)")
        assert opened.evaluate(dim) < first
        keep(opened, "view-sweep")


def test_a_graph_without_ends_says_what_is_in_the_middle(running: Any, page: Path, tmp_path: Path) -> None:
    with visit(running, page) as opened:
        opened.wait_for_function(READY)
        assert "No end was seen" not in opened.locator("#counts").inner_text()
    replay = played("minigrid/doorkey", 200)
    assert not len(replay.graph.terminal_vertices)
    with visit(running, replay.view().save(tmp_path / "graph.html")) as opened:
        opened.wait_for_function(READY)
        assert "0 ends" in opened.locator("#counts").inner_text()
        assert (
            "No end was seen yet: the starts of episodes are in the middle." in opened.locator("#counts").inner_text()
        )
