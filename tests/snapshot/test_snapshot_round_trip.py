"""What is saved comes back bit for bit."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from snapshot_helpers import Arrays, assert_same, listing, load, no_forcing, referenced, save, tiny_chunks

from backsweep.snapshot import SnapshotError, SnapshotMemory

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i4", ">f8"]
MiB = 1 << 20

arrays_of_any_kind = st.sampled_from(DTYPES).flatmap(
    lambda dtype: npst.arrays(
        np.dtype(dtype), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9), fill=st.nothing()
    )
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80).filter(lambda n: n != "__metadata__")
plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.dictionaries(names, arrays_of_any_kind, max_size=5), min_size=1, max_size=3),
    st.dictionaries(st.text(), plain_json, max_size=3),
)
def test_any_arrays_and_metadata_come_back(states: list[Arrays], metadata: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as parent, tiny_chunks(), no_forcing():
        folder = Path(parent, "deep", "snapshot")
        for arrays in states:
            save(folder, arrays, metadata)
            snapshot = load(folder)
            assert_same(snapshot.arrays, arrays)
            assert snapshot.metadata == metadata
            assert json.dumps(snapshot.metadata) == json.dumps(metadata)  # 1, 1.0 and True are not the same
            assert listing(folder) == referenced(folder)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_updates_with_hints_come_back(data: st.DataObject) -> None:
    """Random writes, growth, failed-over folders and hints that are always right."""
    draw = data.draw
    state = np.arange(draw(st.integers(1, 60)) * 3, dtype=np.int32).reshape(-1, 3)
    memory, changed = SnapshotMemory(), set[int]()
    with tempfile.TemporaryDirectory() as parent, tiny_chunks(), no_forcing():
        for step in range(draw(st.integers(1, 6))):
            for row in draw(st.lists(st.integers(0, len(state) - 1), max_size=3)):
                state[row] = step + 1000
                changed.add(row)
            if draw(st.booleans()):
                extra = draw(st.integers(1, 30))
                changed.update(range(len(state), len(state) + extra))
                state = np.concatenate([state, np.full((extra, 3), step, np.int32)])
            folder = Path(parent, draw(st.sampled_from(["a", "a", "a", "b"])))
            save(
                folder,
                {"state": state},
                {"step": step},
                memory=memory,
                dirty={"state": lambda *span: not changed.isdisjoint(range(*span))},
            )
            changed.clear()
            assert_same(load(folder).arrays, {"state": state})
            assert listing(folder) == referenced(folder)


@pytest.mark.parametrize("dtype", [*DTYPES, np.longlong, np.intc])
def test_every_dtype_in_every_layout(tmp_path: Path, dtype: Any) -> None:
    base = (np.arange(4096) % 2 if np.dtype(dtype) == bool else np.arange(4096)).astype(dtype).reshape(64, 64)
    with np.errstate(all="ignore"):
        arrays = {
            "plain": base,
            "transposed": base.T,
            "strided": base[::3, 1::2],
            "backwards": base[::-1],
            "fortran": np.asfortranarray(base),
            "broadcast": np.broadcast_to(base[0], (50, 64)),
            "scalar": base[3:4, 3].reshape(()),
            "empty": base[:0],
            "hollow": base[:, :0],
        }
    with tiny_chunks(512, 256), no_forcing():
        save(tmp_path / "s", arrays)
    assert_same(load(tmp_path / "s").arrays, arrays)


def test_nothing_at_all_comes_back(tmp_path: Path) -> None:
    save(tmp_path, {})
    assert load(tmp_path).arrays == {}


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_resume_exactly(tmp_path: Path, name: str) -> None:
    """Their state has 128-bit integers, and for some of them arrays, which go to `arrays`."""
    generator = np.random.Generator(getattr(np.random, name)(7))
    generator.random(13)
    state = generator.bit_generator.state
    arrays = {key: value for key, value in state["state"].items() if isinstance(value, np.ndarray)}
    if "buffer" in state:
        arrays["buffer"] = state.pop("buffer")
    plain = {**state, "state": {key: value for key, value in state["state"].items() if key not in arrays}}
    save(tmp_path, arrays, {"generator": json.loads(json.dumps(plain, default=int))})

    snapshot = load(tmp_path)
    restored = snapshot.metadata["generator"]
    if "buffer" in snapshot.arrays:
        restored["buffer"] = snapshot.arrays.pop("buffer")
    restored["state"].update(snapshot.arrays)
    resumed = np.random.Generator(getattr(np.random, name)(0))
    resumed.bit_generator.state = restored
    assert np.array_equal(resumed.integers(0, 2**60, 100), generator.integers(0, 2**60, 100))


def test_segments_are_ordinary_safetensors_files(tmp_path: Path) -> None:
    arrays = {"b": np.arange(5, dtype=np.uint8), "d": np.arange(7.0), "ünï/../x": np.eye(3, dtype=np.float32)}
    save(tmp_path, arrays)
    (file,) = (tmp_path / "segments").iterdir()
    assert_same(load_file(file), arrays)


def test_versions_and_order_of_metadata_are_kept(tmp_path: Path) -> None:
    save(tmp_path, {}, {"z": 1, "a": 2}, version=3)
    snapshot = load(tmp_path, versions=range(5))
    assert snapshot.version == 3
    assert list(snapshot.metadata) == ["z", "a"]


def test_into_fills_the_arrays_it_is_given(tmp_path: Path) -> None:
    big = np.arange(4000, dtype=np.int64).reshape(500, 8)
    with tiny_chunks(), no_forcing():
        save(tmp_path, {"big": big, "small": np.ones(3), "scalar": np.array(5)})
    room = np.zeros((600, 8), np.int64)
    scalar = np.zeros((), np.int64)
    asked: list[Any] = []

    def part_of_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        asked.append((shape, dtype))
        return room[50 : 50 + shape[0]]

    snapshot = load(tmp_path, into={"big": part_of_room, "scalar": lambda shape, dtype: scalar, "absent": part_of_room})
    assert asked == [((500, 8), np.dtype(np.int64))]
    assert np.array_equal(room[50:550], big)
    assert not room[:50].any()
    assert not room[550:].any()
    assert scalar == 5
    assert np.shares_memory(snapshot.arrays["big"], room)
    assert np.array_equal(snapshot.arrays["small"], np.ones(3))


@pytest.mark.parametrize(
    "wrong", [np.zeros(4), np.zeros(3, np.float32), [0.0, 0.0, 0.0], np.broadcast_to(np.float64(0), (3,))]
)
def test_into_refuses_arrays_that_do_not_fit(tmp_path: Path, wrong: Any) -> None:
    save(tmp_path, {"x": np.ones(3)})
    with pytest.raises(ValueError, match=r"into\['x'\]") as caught:
        load(tmp_path, into={"x": lambda shape, dtype: wrong})
    assert not isinstance(caught.value, SnapshotError)


def test_neither_saving_nor_loading_multiplies_memory(tmp_path: Path) -> None:
    """200 MiB in a memory-mapped file, saved through a view that is not contiguous, and loaded into another one."""
    shape = (100, 2 * MiB)
    source = np.memmap(tmp_path / "source", np.uint8, "w+", shape=shape)
    source[:, ::4096] = np.arange(100, dtype=np.uint8)[:, None]
    target = np.memmap(tmp_path / "target", np.uint8, "w+", shape=shape)
    with no_forcing():
        tracemalloc.start()
        try:
            save(tmp_path / "s", {"big": source[::-1]})
            saving = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            load(tmp_path / "s", into={"big": lambda shape, dtype: target})
            loading = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert saving < 10 * MiB
    assert loading < 10 * MiB
    assert np.array_equal(target[:, ::4096], source[::-1, ::4096])
