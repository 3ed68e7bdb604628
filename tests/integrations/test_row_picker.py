"""Rows for storages that keep their transitions themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep import Prioritized, Topological
from backsweep.integrations.row_picker import KIND, VERSION, RowPicker, hash_of
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from backsweep.snapshot.file_dict import files_of, write_files


def test_equal_observations_have_equal_hashes_and_others_do_not() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    same = [image, image.copy(), np.asfortranarray(image)]
    assert len({hash_of(each).tobytes() for each in same}) == 1
    others: list[Any] = [
        image.reshape(4, 3),
        image.astype(np.int16),
        image.T,
        {"a": image},
        {"b": image},
        (image, image),
    ]
    assert len({hash_of(each).tobytes() for each in [image, *others]}) == 7
    assert (hash_of({"a": 1, "b": 2}) == hash_of({"b": 2, "a": 1})).all()


def add(picker: RowPicker, place: int, step: int, lane: int = 0, **options: Any) -> None:
    now, following = np.array([step % 10]), np.array([(step + 1) % 10])
    picker.add([place], [lane], [now], [1.0], [following], [step % 10 == 9], [False], **options)


def test_hashes_stay_the_same_because_saves_hold_them() -> None:
    image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert hash_of(image).tolist() == [-4933317517859838308, -5978322979754875844]
    both = {"b": np.float32([1, 2]), "a": np.zeros((0, 2))}
    assert hash_of(both).tolist() == [-5893869014723514074, 1130268656901975665]


def test_picks_are_places_and_priorities_find_their_way_back() -> None:
    picker = RowPicker(20, 1, Prioritized(alpha=1.0), seed=0)
    for step in range(50):  # places 0 to 19, around and around
        add(picker, (step + 5) % 20, step)
    picker.update(np.arange(20), np.where(np.arange(20) == 7, 1000.0, 1e-6))
    places, weights = picker.pick(20)
    assert np.mean(places == 7) > 0.9
    assert (picker.weights_of(places) == weights).all()
    assert (picker.weights_of(np.arange(3)) == 1).all()
    picker.update(places, np.zeros((20, 1)))
    assert len(np.unique(picker.pick(20)[0])) > 3


def test_a_place_that_was_used_again_early_is_not_taken_for_what_was_there() -> None:
    """One lane's ring is full long before the other's, so places are overwritten whose rows are still counted."""
    picker = RowPicker(20, 2, None, seed=0)
    for step in range(10):
        add(picker, 10 + step, step, lane=1)
    for step in range(40):
        add(picker, step % 10, step, lane=0)
    places, _ = picker.pick(20)
    newest = {place: 10 + 30 + place for place in range(10)}
    for place, row in zip(places.tolist(), picker._picked["rows"].tolist(), strict=True):
        assert row == newest[place] if place < 10 else row < 10


def test_a_truncation_without_a_successor_is_never_picked() -> None:
    picker = RowPicker(20, 1, Topological(), seed=0)
    add(picker, 0, 0)
    picker.add([1], [0], [np.array([1])], [0.0], [np.array([0])], [False], [True], known=[False])
    add(picker, 2, 2)
    assert set(picker.pick(20)[0].tolist()) == {0, 2}


@pytest.mark.parametrize("sampler", [None, Topological()])
def test_copies_and_clearing(sampler: Any) -> None:
    picker = RowPicker(20, 1, sampler, seed=0)
    for step in range(15):
        add(picker, step, step)
    other = copy.deepcopy(picker)
    assert picker.pick(8)[0].tolist() == other.pick(8)[0].tolist()
    picker.clear()
    assert len(picker) == 0
    add(picker, 3, 0)
    assert set(picker.pick(4)[0].tolist()) == {3}


def filled(lanes: int = 1) -> RowPicker:
    picker = RowPicker(20, lanes, Topological(), seed=0)
    for step in range(30):
        add(picker, step % 20, step)
    return picker


def test_a_saved_picker_goes_on_as_it_would_have(tmp_path: Path) -> None:
    picker, other = filled(), RowPicker(20, 1, Topological(), seed=5)
    picker.save(tmp_path)
    other.load(tmp_path)
    again = RowPicker(20, 1, Topological(), seed=6)
    again.from_files(picker.to_files())
    expected = picker.pick(8)[0].tolist()
    assert other.pick(8)[0].tolist() == again.pick(8)[0].tolist() == expected


WRONG_PLACES: dict[str, Callable[[dict[str, NDArray[Any]]], Any]] = {
    "no places": lambda arrays: arrays.pop("place_of_slot"),
    "one place for all": lambda arrays: arrays.update(place_of_slot=np.zeros(1, np.int64)),
    "places beyond the end": lambda arrays: arrays["place_of_slot"].__setitem__(3, 20),
    "a live row without a place": lambda arrays: arrays["place_of_slot"].__setitem__(3, -1),
    "rows before the first": lambda arrays: arrays["row_of_place"].__setitem__(3, -2),
    "rows to come": lambda arrays: arrays["row_of_place"].__setitem__(3, 30),
    "fractions": lambda arrays: arrays.update(row_of_place=arrays["row_of_place"].astype(np.float64)),
}


@pytest.mark.parametrize("case", WRONG_PLACES)
def test_wrong_places_are_refused_and_change_nothing(case: str, tmp_path: Path) -> None:
    filled().save(tmp_path)
    found = read_snapshot(tmp_path / "places", kind=KIND, versions={VERSION})
    arrays = {name: array.copy() for name, array in found.arrays.items()}
    WRONG_PLACES[case](arrays)
    write_snapshot(tmp_path / "places", arrays, {}, kind=KIND, version=VERSION)
    picker = RowPicker(20, 1, Topological(), seed=0)
    add(picker, 7, 0)
    replay = picker.replay
    with pytest.raises(SnapshotError, match="place"):
        picker.load(tmp_path)
    assert picker.replay is replay
    assert set(picker.pick(4)[0].tolist()) == {7}


def test_a_picker_of_other_sizes_is_refused(tmp_path: Path) -> None:
    filled().save(tmp_path)
    with pytest.raises(ValueError, match="saved for 20 places, expected 30"):
        RowPicker(30, 1, Topological(), seed=0).load(tmp_path)
    with pytest.raises(ValueError, match="saved for 1 lanes, expected 2"):
        RowPicker(20, 2, Topological(), seed=0).load(tmp_path)


@pytest.mark.parametrize(
    "name", ["../away", "/away", "a/../../away", "c:\\away", "c:away", "..\\away", "a\0b", "", "."]
)
def test_files_with_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    with pytest.raises(ValueError, match="inside of a folder"):
        write_files(folder, {"good": b"1", name: b"2"})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    write_files(folder, {"good": b"1", "in/there": b"2"})
    assert files_of(folder) == {"good": b"1", "in/there": b"2"}
