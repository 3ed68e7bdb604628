"""Watching a run: what the page is told, whom it is told to, and that nothing is left behind."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep.agent import RunError, resume, train
from backsweep.agent.config import SessionConfig
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.live import Live
from backsweep.agent.session.live import live as live_module
from backsweep.agent.session.live.frame import make_frame, newest_episode
from backsweep.agent.session.live.live import Curves
from backsweep.agent.session.records import EvaluationRecord, ReplayRecord, TrainingRecord
from backsweep.agent.session.session import Session
from backsweep.replay import Replay
from backsweep.view.scene import NONE
from trainer_helpers import chain, comparable_records

KINDS = {"Float32Array": "<f4", "Uint32Array": "<u4", "Int32Array": "<i4", "Uint16Array": "<u2", "Uint8Array": "u1"}


def read_frame(frame: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Take a frame apart as the page does."""
    (length,) = struct.unpack_from("<I", frame)
    about: dict[str, Any] = json.loads(frame[4 : 4 + length])
    arrays = {}
    for name, entry in about["arrays"].items():
        count = int(np.prod(entry["shape"]))
        array = np.frombuffer(frame, KINDS[entry["type"]], count, 4 + length + entry["at"])
        arrays[name] = array.reshape(entry["shape"])
    return arrays, about


def network(observations: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(observations, np.float64).reshape(len(observations), -1)[:, 0] / 10


def walked(values: bool = False, sampler: Any = None) -> Replay:
    """Return a replay of two episodes of a corridor, and the beginning of a third."""
    import gymnasium as gym

    from backsweep import GraphValues, Topological

    replay = Replay(
        gym.spaces.Discrete(6),
        gym.spaces.Discrete(2),
        50,
        Topological() if sampler is None else sampler,
        values=GraphValues(untried="never") if values else None,
    )
    for path in ([0, 1, 2, 5], [0, 1, 3, 5], [0, 4]):
        for before, after in itertools.pairwise(path):
            replay.add(before, after % 2, float(after == 5), after, after == 5, False)
    return replay


def test_a_frame_is_the_graph_and_the_last_episode() -> None:
    replay = walked(values=True)
    replay.renew_values(lambda states: np.zeros((len(states), 2)))
    arrays, about = read_frame(make_frame(replay, network, {"step": 7}))
    assert (about["step"], about["states"], about["ends"], about["planned"]) == (7, 6, 1, True)
    vertices = replay.graph.vertices.tolist()
    np.testing.assert_allclose(arrays["value"], replay.graph.values(), rtol=1e-6)
    states = [vertices[state] for state in arrays["episode_state"].tolist()]
    assert states == [replay.graph.vertex(observation) for observation in (0, 1, 3, 5)]
    assert arrays["episode_reward"].tolist() == [0.0, 0.0, 1.0]
    assert arrays["episode_action"].tolist() == [1, 1, 1]
    assert len(set(arrays["id"].tolist())) == 6


def test_without_planned_values_the_network_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from backsweep.agent.session.live import frame

    replay = walked()
    arrays, about = read_frame(make_frame(replay, network, {}))
    assert not about["planned"]
    by_vertex = dict(zip(replay.graph.vertices.tolist(), arrays["value"].tolist(), strict=True))
    for observation in range(6):
        vertex = replay.graph.vertex(observation)
        assert vertex is not None
        assert by_vertex[vertex] == pytest.approx(observation / 10)
    monkeypatch.setattr(frame, "MOST_ASKED", 2)
    arrays, _ = read_frame(make_frame(replay, network, {}))
    assert np.isfinite(arrays["value"]).sum() == 2


def test_a_method_without_a_graph_is_not_given_one() -> None:
    from backsweep import Uniform

    replay = walked(sampler=Uniform())
    arrays, about = read_frame(make_frame(replay, network, {}))
    assert replay.machinery.graph is None
    assert about["states"] == 0
    assert len(arrays["episode_reward"]) == 3


def test_states_that_are_not_shown_leave_gaps_in_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    from backsweep.agent.session.live import frame

    monkeypatch.setattr(frame, "MOST_STATES", 2)
    arrays, about = read_frame(make_frame(walked(), network, {}))
    assert (about["shown"], about["states"]) == (2, 6)
    assert (arrays["episode_state"] == NONE).any()
    assert arrays["episode_state"][-1] != NONE  # the end has most others hanging on it


def test_no_episode_has_ended_yet() -> None:
    import gymnasium as gym

    from backsweep import Topological

    replay = Replay(gym.spaces.Discrete(6), gym.spaces.Discrete(2), 50, Topological())
    replay.add(0, 0, 0.0, 1, False, False)
    assert len(newest_episode(replay)) == 0
    arrays, _ = read_frame(make_frame(replay, network, {}))
    assert len(arrays["episode_reward"]) == 0


def test_curves_give_out_each_point_once() -> None:
    curves = Curves()
    means = dict.fromkeys(("loss", "absolute_td_error", "batch_target", "effective_sample_size"))
    record = TrainingRecord(
        step=5, updates=1, episodes=2, epsilon=0.5, mean_return=1.5, mean_length=None, batch_q=float("nan"), **means
    )
    curves.write(record)
    curves.write(ReplayRecord(step=5, nbytes=1, statistics={"vertices": 3, "rows": 9}))
    first = curves.since(0)
    assert first == {"points": [("training return", 5, 1.5), ("states", 5, 3.0)], "next": 2}
    assert curves.since(2) == {"points": [], "next": 2}
    assert EvaluationRecord.kind == "evaluation"


@pytest.fixture
def live() -> Any:
    fleet = Fleet([chain()], device="cpu")
    page = Live(fleet, "a <run>")
    yield fleet, page
    page.close()


def ask(url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


def test_the_page_is_served_to_this_machine_alone(live: Any) -> None:
    _, page = live
    status, body, headers = ask(page.url)
    assert status == 200
    assert b"a &lt;run&gt;" in body
    assert not re.search(rb"(src|href)=", body)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    port = int(page.url.split(":")[2].strip("/"))
    assert page._server._server.server_address == ("127.0.0.1", port)
    assert ask(page.url, Host="evil.example")[0] == 403
    assert ask(page.url, Host=f"localhost:{port}")[0] == 200
    assert ask(page.url + "etc/passwd")[0] == 404
    assert ask(page.url + "graph")[0] == 204  # no picture yet
    for first in ("%C2%B2", "9" * 5000, "-1", "1e3", ""):
        assert ask(f"{page.url}state?from={first}")[0] == 200


def test_pictures_are_made_while_somebody_looks_and_take_a_fixed_share(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, page = live
    now = [1000.0]
    monkeypatch.setattr(live_module.time, "monotonic", lambda: now[0])
    page._asked_at = -1e9
    assert not page.wants_frame(5), "nobody looks"
    state = json.loads(ask(page.url + "state?from=0")[1])
    assert (state["step"], state["graph"]) == (5, 0)
    assert page.wants_frame(6)

    def slow(*arguments: Any) -> bytes:
        now[0] += 3.0
        return b"frame"

    monkeypatch.setattr(live_module, "make_frame", slow)
    page.show(fleet)
    assert ask(page.url + "graph")[1] == b"frame"
    page._asked_at = 1e9  # somebody looks all the time
    now[0] += live_module.SHORTEST_PAUSE
    assert page.wants_frame(7), "the first picture is not counted"
    page.show(fleet)
    now[0] += 3.0 / live_module.SHARE - 1.0
    assert not page.wants_frame(7)
    now[0] += 1.1
    assert page.wants_frame(8)


def test_close_gives_the_port_back(live: Any) -> None:
    fleet, _ = live
    other = Live(fleet, "another")
    port = other._server.port
    with pytest.raises(ValueError, match=f"live_port {port} cannot be used"):
        Live(fleet, "third", port)
    other.close()
    assert not [thread for thread in threading.enumerate() if thread is other._server._thread]
    Live(fleet, "again", port).close()


def test_a_watched_run_has_the_records_it_would_have_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[bytes] = []

    def look() -> None:
        while not done.is_set():
            found = re.search(r"http://127.0.0.1:\d+/", "".join(printed))
            if found is None:
                printed.append(capsys.readouterr().out)
            else:
                try:
                    ask(found[0] + "state")
                    seen.append(ask(found[0] + "graph")[1])
                except OSError:
                    return
            time.sleep(0.01)

    printed: list[str] = []
    done = threading.Event()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        train(chain(), tmp_path / "watched", live=True)
    finally:
        done.set()
        watcher.join()
    train(chain(), tmp_path / "alone", quiet=True)
    assert comparable_records(tmp_path / "watched") == comparable_records(tmp_path / "alone")
    assert sorted(path.name for path in (tmp_path / "watched").iterdir()) == sorted(
        path.name for path in (tmp_path / "alone").iterdir()
    )
    arrays, about = read_frame(next(frame for frame in reversed(seen) if frame))
    assert 0 < about["states"] == len(arrays["id"]) <= 10


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "backsweep", "train", "nchain-10", "--steps", "10000000", "--live"]
    run = subprocess.Popen(
        [*command, "--folder", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert run.stdout is not None
    url, port = "", 0
    for line in run.stdout:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
            url, port = found[0], int(found[1])
            break
    while json.loads(ask(url + "state")[1])["step"] == 0:
        time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    rest = run.communicate(timeout=240)[0]
    assert run.returncode == 130, rest
    assert "backsweep resume" in rest
    with socket.socket() as knock:
        assert knock.connect_ex(("127.0.0.1", port)) != 0
    known = {"config.json", "machine.json", "sessions.jsonl", "records.jsonl", "agent", "checkpoints", "writer.lock"}
    assert {path.name for path in (tmp_path / "run").iterdir()} <= known


def test_a_wrong_port_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="live_port must be from 0 to 65535, got 70000"):
        SessionConfig(live_port=70000)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"live_port {port} cannot be used"):
            train(chain(), tmp_path / "run", live=True, live_port=port, quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_shows_every_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash the records behind the checkpoint are made again."""
    original, folder = Session._after_turn, tmp_path / "run"

    def crash(self: Session) -> None:
        original(self)
        if self.fleet.step >= 1_400:
            raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", crash)
        with pytest.raises(OSError, match="power cut"):
            train(chain(), folder, quiet=True, checkpoint_interval=700)
    curves: list[Curves] = []
    monkeypatch.setattr(Curves, "__init__", _noted(Curves.__init__, curves))
    resume(folder, live=True, quiet=True)
    points = [(name, step) for name, step, _ in curves[0].since(0)["points"]]
    assert len(points) == len(set(points)) > 10


def _noted(original: Any, found: list[Curves]) -> Any:
    def init(self: Curves) -> None:
        original(self)
        found.append(self)

    return init


def test_the_page_stays_with_the_run_that_it_shows() -> None:
    fleet = Fleet([chain(seed=0), chain(seed=1)])
    live = Live(fleet, "first")
    try:
        live.show(fleet)
        shown = live._frame
        fleet.drop([0])
        live.show(fleet)
        assert live._frame is shown
        assert not live.wants_frame(fleet.step)
    finally:
        live.close()
