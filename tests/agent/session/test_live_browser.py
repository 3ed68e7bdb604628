"""The page of a run that is training, in Chromium: it draws what happens, and says when the run is over."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from browser import DESKTOP, FAINT, NAMELESS, PATIENCE, PHONE, TOO_WIDE, keep, visit

COMMAND = [sys.executable, "-m", "backsweep", "train", "minigrid/simplecrossing-easy", "--steps", "10000000", "--live"]
SOON = ["--warmup-steps", "200", "--record-interval", "100", "--evaluation-interval", "1000000"]
DRAWN = "() => window.watch && watch.version > 0 && document.getElementById('waiting').hidden"


@pytest.fixture(scope="module")
def run(running: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run as the command starts it, and the address of its page."""
    folder = tmp_path_factory.mktemp("live") / "run"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*COMMAND, *SOON, "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                yield process, found[0]
                break
        else:
            pytest.fail("".join(said))
        process.kill()


@pytest.mark.parametrize(("name", "size", "dark"), [("desktop", DESKTOP, False), ("phone", PHONE, True)])
def test_the_page_follows_the_run(
    running: Any, run: tuple[subprocess.Popen[str], str], name: str, size: tuple[int, int], dark: bool
) -> None:
    with visit(running, run[1], size=size, dark=dark) as opened:
        opened.wait_for_function(DRAWN)
        first = opened.evaluate("[watch.step, watch.version]")
        opened.wait_for_function("([step, version]) => watch.step > step && watch.version > version", arg=first)
        assert re.match(r"step [\d,]+ of 10,000,000", opened.locator("#progress").inner_text())
        assert re.match(r"[\d,]+ states, [\d,]+ edges", opened.locator("#counts").inner_text())
        opened.wait_for_selector("#charts .chart:not([hidden]) svg circle")
        assert not re.search(r"\b1 (states|edges|ends|episodes)\b", opened.locator("#counts").inner_text())
        opened.wait_for_selector("#film:not([hidden]) #picture canvas")
        opened.locator("#moment").fill("0")
        assert opened.locator("#scene").inner_text().startswith("step 0 of ")
        keep(opened, f"live-{name}")
        assert opened.evaluate(TOO_WIDE) <= 0
        assert opened.evaluate(NAMELESS) == []
        assert opened.evaluate(FAINT) == []


def test_a_page_opened_too_late_does_not_wait_for_ever(running: Any, run: tuple[subprocess.Popen[str], str]) -> None:
    context = running.new_context()
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.route("**/state*", lambda route: route.abort())  # as if the run had ended before the first answer
    opened.goto(run[1])
    opened.wait_for_selector("body[data-ended=true]")
    assert opened.locator("#waiting").inner_text() == "No graph was drawn before the run ended."
    context.close()


def test_the_page_says_that_the_run_was_stopped(running: Any, run: tuple[subprocess.Popen[str], str]) -> None:
    process, address = run
    context = running.new_context()
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.goto(address)
    opened.wait_for_function(DRAWN)
    process.send_signal(signal.SIGINT)
    opened.wait_for_selector("body[data-ended=true]")
    assert opened.locator("#progress").inner_text().startswith("The run has ended or was stopped")
    assert opened.locator("#counts").inner_text()  # what was there stays
    context.close()
    assert process.stdout is not None
    assert "backsweep resume" in process.stdout.read()
