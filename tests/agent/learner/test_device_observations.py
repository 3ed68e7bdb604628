"""`DeviceObservations` gives back what was written, whatever the shape and type of observations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.agent.learner.device_observations import SLOTS, DeviceObservations
from backsweep.agent.learner.packed_arrays import PackedArrays

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 4, 3), np.uint8), ((7,), np.float32), ((3,), np.float64), ((), np.int64), ((5,), np.uint8)],
    ids=str,
)
def test_rows_hold_what_was_last_written(shape: tuple[int, ...], dtype: type) -> None:
    generator = np.random.default_rng(0)
    kept = DeviceObservations(50, shape, dtype, CPU)
    expected = np.zeros((50, *shape), dtype)
    kept.write(np.arange(50), expected)
    for count in (0, 1, 3, 0, 20):
        places = generator.choice(50, count, replace=False)
        observations = (generator.random((count, *shape)) * 200).astype(dtype)
        expected[places] = observations
        kept.write(places, observations)
        observations[...] = 0  # the caller may do that
        assert np.array_equal(kept.rows.numpy(), expected)


@pytest.mark.parametrize(("shape", "dtype"), [((5, 4, 3), np.uint8), ((), np.int64), ((5,), np.uint8)], ids=str)
def test_staging_slots_take_turns(shape: tuple[int, ...], dtype: type) -> None:
    """What a GPU's writes go through, on the CPU, where nothing is asynchronous."""
    generator = np.random.default_rng(0)
    kept = DeviceObservations(50, shape, dtype, CPU)
    expected = np.zeros((50, *shape), dtype)
    kept.write(np.arange(50), expected)
    for count in (1, 3, 20, *([2] * SLOTS), 20):
        places = generator.choice(50, count, replace=False)
        expected[places] = (generator.random((count, *shape)) * 200).astype(dtype)
        kept._write_chunk(places, expected[places])
        assert np.array_equal(kept.rows.numpy(), expected)


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


@pytest.mark.parametrize("staged", [False, True], ids=["directly", "through slots"])
@pytest.mark.parametrize(("shape", "block"), [((8, 12, 3), 4), ((6, 4, 2), 2), ((4, 8, 4), 1)], ids=str)
def test_pictures_in_blocks_come_back_as_they_were(shape: tuple[int, int, int], block: int, staged: bool) -> None:
    generator = np.random.default_rng(0)
    kept = DeviceObservations(20, shape, np.uint8, CPU)
    kept.cut_into_blocks(block)
    kept.cut_into_blocks(block)  # as it is already
    pictures = generator.integers(0, 256, (20, *shape), np.uint8)
    for places in (np.arange(20), np.array([7, 3])):
        (kept._write_chunk if staged else kept.write)(places, pictures[places])
    index = torch.tensor([[3, 0], [19, 7]])
    assert np.array_equal(kept.in_order(index).numpy(), pictures[index.numpy()])
    # A block's bytes lie together: the first block of a picture is its first block x block pixels.
    first = kept.rows[5].flatten()[: block * block * shape[2]].numpy()
    assert np.array_equal(first, pictures[5, :block, :block].reshape(-1))


def test_blocks_that_do_not_fit_are_refused() -> None:
    kept = DeviceObservations(4, (6, 8, 3), np.uint8, CPU)
    with pytest.raises(ValueError, match="block must divide"):
        kept.cut_into_blocks(4)
    with pytest.raises(ValueError, match="whole words"):
        kept.cut_into_blocks(2)  # 2 pixels of 3 bytes
    kept.write(np.array([1]), np.zeros((1, 6, 8, 3), np.uint8))
    with pytest.raises(ValueError, match="already"):
        kept.cut_into_blocks(2)
