"""The bank gives back what was written, whatever the shape and type of observations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.learner.bank import ObservationBank
from backsweep.learner.packed import PackedArrays

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 4, 3), np.uint8), ((7,), np.float32), ((3,), np.float64), ((), np.int64), ((5,), np.uint8)],
    ids=str,
)
def test_rows_hold_what_was_last_written(shape: tuple[int, ...], dtype: type) -> None:
    generator = np.random.default_rng(0)
    bank = ObservationBank(50, shape, dtype, CPU)
    expected = np.zeros((50, *shape), dtype)
    bank.write(np.arange(50), expected)
    for count in (0, 1, 3, 0, 20):
        places = generator.choice(50, count, replace=False)
        observations = (generator.random((count, *shape)) * 200).astype(dtype)
        expected[places] = observations
        bank.write(places, observations)
        observations[...] = 0  # the caller may do that
        assert np.array_equal(bank.rows.numpy(), expected)
    assert bank.nbytes == expected.nbytes


def test_packed_arrays_are_apart_and_aligned() -> None:
    packed = PackedArrays({"a": ((3,), np.int64), "b": ((2, 5), np.float32), "c": ((), np.float64)}, CPU)
    packed.host["a"][:] = [1, 2, 3]
    packed.host["b"][:] = 4
    packed.host["c"][...] = 5
    packed.send()
    assert packed.device["a"].tolist() == [1, 2, 3]
    assert packed.device["b"].tolist() == [[4.0] * 5] * 2
    assert packed.device["c"].item() == 5
    assert all(tensor.data_ptr() % 16 == 0 for tensor in packed.device.values())
