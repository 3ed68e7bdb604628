"""Ctrl-C at every step of an add: the row is there for everybody, or for nobody."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import Mixture, Prioritized, Replay, Topological
from backsweep.jit.compilation import entry_point
from backsweep.jit.interrupts import uninterrupted
from backsweep.store.ingest_kernels import add_arguments

SPACES: dict[str, gym.Space[Any]] = {
    "in one call": gym.spaces.Discrete(30),
    "store, then graph": gym.spaces.Box(-100.0, 100.0, (3,), np.float32),
}


def interrupted_at(place: int, work: Callable[[], None]) -> bool:
    """Let SIGINT come at the given step of the interpreter inside of backsweep; say whether there was such a step."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        if "backsweep" not in frame.f_code.co_filename or "/numba/" in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == place:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks for such a frame when tracing begins
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return steps >= place


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def observations(kind: str, number: int) -> Any:
    numbers = np.array([number % 30, (number + 7) % 30])
    return numbers if kind == "in one call" else np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)


@pytest.mark.parametrize("kind", SPACES)
def test_an_add_is_whole_wherever_it_is_interrupted(kind: str, tmp_path: Path) -> None:
    sampler = Mixture([(0.5, Topological()), (0.5, Prioritized())])
    # Steps that are cut short look like lost ones, which is not what this is about: the mode is not checked.
    options: dict[str, Any] = {"num_envs": 2, "autoreset": "next_step", "check_autoreset": "off"}
    replay = Replay(SPACES[kind], gym.spaces.Discrete(2), 50, sampler, **options)
    number = 0

    def add() -> None:
        ends = np.array([number % 5 == 4, number % 7 == 6])
        two = np.zeros(2, np.int64), np.zeros(2, np.float32)
        replay.add(observations(kind, number), *two, observations(kind, number + 1), ends, np.zeros(2, np.bool_))

    for _ in range(2):  # the first one loads the kernels, so that all calls of the second take the same steps
        replay = Replay(SPACES[kind], gym.spaces.Discrete(2), 50, sampler, **options)
        if entry_point(add_arguments, 2) is None:
            add()
    place, cut = 1, 0
    while True:
        total = replay.stats()["rows_ever_added"]
        if not interrupted_at(place, add):
            break
        cut += replay.stats()["rows_ever_added"] == total
        # The first add of all may be the one that was cut short, so even sampling from nothing is tried.
        if len(replay):
            batch = replay.sample(16)
            assert np.isfinite(batch.weight).all()
            replay.update_priorities(batch.row, batch.reward)
        replay.save(tmp_path / "save")
        Replay.load(tmp_path / "save")  # which checks that all parts agree
        number += 1
        place += 1
    assert place > 100
    assert 20 < cut < place - 1  # some before the store has them, and at least one after


def test_signals_wait_for_the_end_of_the_block() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inside"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_need_no_protection() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with uninterrupted():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


@pytest.mark.parametrize("kind", SPACES)
def test_clear_is_whole_wherever_it_is_interrupted(kind: str, tmp_path: Path) -> None:
    place, stopped = 1, 0
    while True:
        replay = Replay(SPACES[kind], gym.spaces.Discrete(2), 40, Topological(), num_envs=2)
        for step in range(5):
            replay.add(
                observations(kind, step), [0, 1], [0.0, 1.0], observations(kind, step + 1), [False] * 2, [False] * 2
            )
        if not interrupted_at(place, replay.clear):
            break
        stopped += 1
        assert len(replay) in (0, 10)
        replay.save(tmp_path / "save")
        assert len(Replay.load(tmp_path / "save")) == len(replay)
        place = max(place + 7, int(1.15 * place))
    assert stopped > 10


def test_a_clear_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = Replay(gym.spaces.Discrete(30), gym.spaces.Discrete(2), 40, Topological())
    for step in range(5):
        replay.add(step, 0, 0.0, step + 1, step == 4, False)

    def fail(*_: Any) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Replay, "_use_arrays", fail)
        with pytest.raises(OSError, match="no room"):
            replay.clear()
    assert len(replay) == 5
    assert sorted(replay.sample(5).row) == [0, 1, 2, 3, 4]


def test_every_signal_is_handled_even_if_the_first_handler_raises() -> None:
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    def send(numbers: tuple[int, ...]) -> None:
        with uninterrupted():
            for number in numbers:
                signal.raise_signal(number)
            assert not heard

    numbers = (signal.SIGUSR1, signal.SIGTERM)
    before = {number: signal.signal(number, hear) for number in numbers}
    try:
        with pytest.raises(KeyboardInterrupt):
            send((signal.SIGINT, *numbers))
        assert heard == list(numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
