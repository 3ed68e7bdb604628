"""Arguments that a kernel takes from where they lie are staged exactly as the long way stages them."""

from __future__ import annotations

import ctypes
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep import Replay
from backsweep.jit import objects
from backsweep.jit.compilation import interpreted
from backsweep.store import argument_form_kernels, staging
from backsweep.store.argument_form_kernels import NUMBERS_STAGED, OBSERVATIONS_STAGED

pytestmark = pytest.mark.kernels
compiled = pytest.mark.skipif(interpreted(), reason="only compiled kernels read objects")

SPACES: dict[str, gym.Space[Any]] = {
    "floats": gym.spaces.Box(-9, 9, (3,), np.float32),  # 12 bytes: not a whole number of words
    "doubles": gym.spaces.Box(-9, 9, (2, 2), np.float64),
    "image": gym.spaces.Box(0, 255, (2, 4, 3), np.uint8),
    "shorts": gym.spaces.Box(-9, 9, (5,), np.int16),
    "halves": gym.spaces.Box(-9, 9, (4,), np.float16),
    "number": gym.spaces.Discrete(7, start=-2),
    "flags": gym.spaces.MultiBinary(5),
    "pair": gym.spaces.Dict({"a": gym.spaces.Discrete(7, start=-2), "b": gym.spaces.Box(-9, 9, (2,), np.float32)}),
}
ACTIONS: dict[str, gym.Space[Any]] = {
    "discrete": gym.spaces.Discrete(5, start=-1),
    "box": gym.spaces.Box(-1, 1, (2,), np.float32),
    "box64": gym.spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, np.inf]), dtype=np.float64),
    "several": gym.spaces.MultiDiscrete([3, 4]),
}
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", ">i4", "O"]
FORMS = ["as it is", "list", "tuple", "read-only", "strided", "backwards", "fortran", "unaligned", "column", "subclass"]


def in_form(array: NDArray[Any], form: str) -> Any:
    """Return the same numbers in another form."""
    if form in ("list", "tuple"):
        return array.tolist() if form == "list" else tuple(array.tolist()) if array.ndim else array.item()
    if form == "strided" and array.ndim:
        return np.repeat(array, 2, axis=0)[::2]
    if form == "backwards" and array.ndim:
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    if form == "fortran":
        return np.asfortranarray(array)
    if form == "unaligned" and array.dtype.itemsize > 1 and array.dtype != object:
        raw = np.zeros(array.nbytes + 1, np.uint8)
        raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw[1:].view(array.dtype).reshape(array.shape)
    if form == "column":
        return array[..., None]
    if form == "subclass":
        return array.view(np.recarray)
    array = array.copy()
    array.flags.writeable = form != "read-only"
    return array


@st.composite
def numbers(draw: Any, lanes: int, low: int, high: int) -> Any:
    """Draw a number for each lane, mostly within bounds, in any form."""
    values = [draw(st.integers(low, high)) for _ in range(lanes)]
    if draw(st.integers(0, 9)) == 0:
        values[0] = draw(st.sampled_from([low - 1, high + 1, 2**40, 2**70, np.nan, np.inf, -1e39]))
    with np.errstate(all="ignore"):
        try:
            array = np.array(values).astype(draw(st.sampled_from(NUMBERS)))
        except (OverflowError, ValueError, TypeError):
            array = np.array(values, object)
    if lanes == 1 and draw(st.booleans()):
        array = array[0] if draw(st.booleans()) else array.reshape(())
        if isinstance(array, np.generic) and draw(st.booleans()):
            return array.item()
        if not isinstance(array, np.ndarray):
            return array
    return in_form(array, draw(st.sampled_from(FORMS)))


@st.composite
def flags(draw: Any, lanes: int) -> Any:
    array = np.array([draw(st.booleans()) for _ in range(lanes)])
    if lanes == 1 and draw(st.booleans()):
        return bool(array[0]) if draw(st.booleans()) else array[0]
    array = array.astype(draw(st.sampled_from(["?", "?", "i8", "f4", "u1"])))
    return in_form(array, draw(st.sampled_from(FORMS)))


@st.composite
def values_of(draw: Any, space: gym.Space[Any], lanes: int) -> Any:
    """Draw a value of a space for each lane, in any form, and now and then one that is not of it."""
    if isinstance(space, gym.spaces.Dict):
        return {key: draw(values_of(part, lanes)) for key, part in space.spaces.items()}
    if isinstance(space, gym.spaces.Discrete):
        return draw(numbers(lanes, int(space.start), int(space.start + space.n - 1)))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    array = np.stack([generator.integers(-2, 3, space.shape) for _ in range(lanes)]).astype(space.dtype)
    if isinstance(space, (gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)) or space.shape == (2,):
        array = np.abs(array) % 2
    if draw(st.integers(0, 9)) == 0 and array.dtype.kind == "f":
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf, 3]))
    if draw(st.integers(0, 9)) == 0:
        array = array.astype(draw(st.sampled_from(["f8", "f4", "i8", "u1"])))
    if draw(st.integers(0, 9)) == 0:
        array = array[..., :-1]
    if lanes == 1 and draw(st.booleans()):
        array = array[0]
    return in_form(array, draw(st.sampled_from(FORMS)))


@st.composite
def calls(draw: Any) -> tuple[str, str, int, list[Any]]:
    space, action, lanes = draw(st.sampled_from(sorted(SPACES))), draw(st.sampled_from(sorted(ACTIONS))), 1
    if draw(st.booleans()):
        lanes = 3
    steps = [
        (
            draw(values_of(SPACES[space], lanes)),
            draw(values_of(ACTIONS[action], lanes)),
            draw(numbers(lanes, -3, 3)),
            draw(values_of(SPACES[space], lanes)),
            draw(flags(lanes)),
            draw(flags(lanes)),
        )
        for _ in range(3)
    ]
    return space, action, lanes, steps


def outcome(replay: Replay, arguments: tuple[Any, ...]) -> Any:
    """Return what a call of `add` gave, or what it said."""
    try:
        return replay.add(*arguments).tolist()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error), str(error)


@compiled
@given(calls())
def test_arguments_are_staged_as_the_long_way_does(call: tuple[str, str, int, list[Any]]) -> None:
    space, action, lanes, steps = call
    quick, slow = (Replay(SPACES[space], ACTIONS[action], 20, num_envs=lanes, check_autoreset="off") for _ in range(2))
    slow._store.staging._given = None
    for arguments in steps:
        assert outcome(quick, arguments) == outcome(slow, arguments)
    assert quick.stats() == slow.stats()
    mine, other = quick._store.arrays(), slow._store.arrays()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, other[name], name)


PLAIN = {
    1: [
        (np.zeros(3, np.float32), 1, 0.5, np.ones(3, np.float32), False, True),
        (np.zeros((1, 3), np.float32), np.int64(-1), 1, np.ones(3, np.float32), np.False_, np.True_),
        (np.zeros(3, np.float32), np.array([2], np.int32), np.float32(2), np.ones(3, np.float32), 0, np.array([True])),
        (np.zeros(3, np.float32), np.array(-1, np.int8), -7, np.ones(3, np.float32), np.array([[False]]), False),
    ],
    2: [
        (
            np.zeros((2, 3), np.float32),
            np.array([[1], [2]], np.int32),
            np.zeros(2, np.float32),
            np.ones((4, 3), np.float32)[::2],
            np.zeros(2, np.bool_),
            np.zeros((2, 1), np.bool_),
        )
    ],
}


@compiled
@pytest.mark.parametrize(("lanes", "arguments"), [(lanes, each) for lanes, all_of in PLAIN.items() for each in all_of])
def test_what_is_plain_is_taken_as_it_lies(lanes: int, arguments: tuple[Any, ...]) -> None:
    replay = Replay(SPACES["floats"], ACTIONS["discrete"], 20, num_envs=lanes)
    done = argument_form_kernels.stage_arguments(id(arguments), replay._store.staging._given)
    assert done & (NUMBERS_STAGED | OBSERVATIONS_STAGED) == NUMBERS_STAGED | OBSERVATIONS_STAGED


@compiled
def test_objects_are_laid_out_as_expected() -> None:
    assert objects.object_places() is not None


@compiled
def test_where_objects_are_laid_out_otherwise_arguments_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def lies_elsewhere(address: int) -> int:
        return int(ctypes.c_int64.from_address(address).value) + 8

    for name in ("_tuples_are_known", "_arrays_are_known", "_number_is_known", "_int_tags"):
        with monkeypatch.context() as patch:
            if name == "_int_tags":
                patch.setattr(objects, name, lambda: None)
            else:
                patch.setattr(objects, "_word", lies_elsewhere)
                assert not (getattr(objects, name)() if name != "_number_is_known" else objects._number_is_known(1.5))
            assert objects.object_places.__wrapped__() is None
    monkeypatch.setattr(staging, "object_places", lambda: None)
    replay = Replay(SPACES["floats"], ACTIONS["discrete"], 20)
    assert replay.add(*PLAIN[1][0]).tolist() == [0]
    assert replay._store.staging._given is None
