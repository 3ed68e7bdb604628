"""Rows for storages that keep their transitions themselves."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from backsweep import Prioritized, Topological
from backsweep.integrations.row_picker import RowPicker, hash_of


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
