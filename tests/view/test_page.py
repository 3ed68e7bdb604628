"""The page as text, in a notebook, and the command that writes it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from view_replays import planned_replay, played, small_replay

from backsweep import Replay
from backsweep.agent import train, train_fleet
from backsweep.cli import main
from backsweep.view.page import pack
from trainer_helpers import chain


def words_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="words">(.*?)</script>', text, re.DOTALL)
    assert found
    words: dict[str, object] = json.loads(found[1])
    return words


def test_arrays_come_back_from_the_page() -> None:
    page = str(planned_replay().view(title="small"))
    table = words_of(page)["arrays"]
    found = re.search(r'<script type="text/plain" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data = gzip.decompress(base64.b64decode(found[1]))
    assert isinstance(table, dict)
    entry = table["visits"]
    assert entry["type"] == "Uint32Array"
    visits = np.frombuffer(data, "<u4", entry["shape"][0], entry["at"])
    assert sorted(visits.tolist()) == [1, 1, 2, 2, 2, 2, 3]


def test_packed_arrays_are_aligned() -> None:
    data, table = pack({"a": np.arange(3, dtype=np.uint8), "b": np.arange(2, dtype=np.float32)})
    assert table["b"]["at"] == 8
    assert np.frombuffer(data, "<f4", 2, 8).tolist() == [0.0, 1.0]


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = str(small_replay().view(title="small"))
    assert "{{" not in page.split('id="data"')[0]
    assert not re.search(r"https?://", page)
    assert not re.search(r"<(link|img|script)[^>]+(src|href)=", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_a_title_cannot_become_code() -> None:
    evil = "</script><script>alert(1)</script>{{DATA}}"
    page = small_replay().view(title=evil)
    assert "<script>alert" not in str(page)
    assert words_of(str(page))["title"] == evil
    assert "<script>alert" not in page._repr_html_()


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    page = small_replay().view(title="mine", height=400)
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "height:400px" in frame
    inside = re.search(r'srcdoc="(.*?)" title="mine"', frame, re.DOTALL)
    assert inside
    assert html.unescape(inside[1]) == str(page)
    assert repr(page) == "GraphPage('mine', 7 of 7 states)"


def test_an_empty_replay_and_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="the replay is empty"):
        Replay(gym.spaces.Discrete(2), gym.spaces.Discrete(2), 10).view()
    with pytest.raises(ValueError, match="most_states must be an int of 1 or more, got 0"):
        small_replay().view(most_states=0)


def test_a_graph_without_ends_and_without_discrete_actions() -> None:
    replay = Replay(gym.spaces.Discrete(5), gym.spaces.Box(-1, 1, (2,)), 20)
    for state in range(4):
        replay.add(state, np.zeros(2, np.float32), 0.0, state + 1, False, False)
    page = replay.view()
    assert page.words["ends"] == 0
    assert page.words["discreteActions"] is False
    assert page.words["endsDisc"] is None


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["view", *arguments, "--no-open"]) == 0
    path = capsys.readouterr().out.split(": ")[0]
    return words_of(Path(path).read_text())


def test_view_a_saved_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_replay().save("mine")
    words = written(capsys, "mine")
    assert (words["title"], words["states"], words["shown"]) == ("mine", 7, 7)
    assert Path("mine-graph.html").exists()
    assert written(capsys, "mine", "--most-states", "4", "--out", "sub/few.html")["shown"] == 4
    assert Path("sub/few.html").exists()


def test_view_a_runs_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(chain(steps=300, warmup_steps=100), tmp_path / "run", quiet=True)
    words = written(capsys, str(tmp_path / "run"), "--out", str(tmp_path / "page.html"))
    assert words["title"] == "nchain-10 ter seed 0, step 300"
    assert words["rows"] == 300
    assert words["actions"] == ["forward", "backward"]


def test_view_one_run_of_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = {f"run{seed}": chain(steps=300, warmup_steps=100, seed=seed) for seed in (3, 4)}
    train_fleet(configs, tmp_path / "fleet", quiet=True)
    out = ("--out", str(tmp_path / "page.html"))
    words = written(capsys, str(tmp_path / "fleet"), "--run", "run4", *out)
    assert "seed 4" in str(words["title"])
    assert "seed 3" in str(written(capsys, str(tmp_path / "fleet" / "run3"), *out)["title"])
    for wrong, hint in (((), "holds 2 runs: name one of run3, run4"), (("--run", "run9"), "has no run 'run9'")):
        assert main(["view", str(tmp_path / "fleet"), *wrong, "--no-open"]) == 2
        assert hint in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_view_a_minari_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    replay = played("nchain-5", 60)
    replay.to_minari("backsweep/seen-v0", description="random play")
    monkeypatch.chdir(tmp_path)
    by_id = written(capsys, "backsweep/seen-v0")
    by_folder = written(capsys, str(tmp_path / "minari" / "backsweep" / "seen-v0"))
    assert by_id["title"] == by_folder["title"] == "backsweep/seen-v0"
    assert by_id["rows"] == by_folder["rows"] == 60


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, ("there is no folder",)),
        (lambda path: path.mkdir(), ("holds nothing to view", "manifest.json")),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_text("{")), ("manifest",)),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{}")), ("no checkpoint",)),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_viewed_is_one_line_and_exit_code_2(
    make: object, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    make(tmp_path / "thing")
    assert main(["view", str(tmp_path / "thing"), "--no-open"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("backsweep: ")
    for word in words:
        assert word in error
    assert list(tmp_path.glob("*.html")) == []
