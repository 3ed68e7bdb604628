"""`make test` runs the kernels three ways; here each way shows that it is what it claims to be."""

from __future__ import annotations

import os

import numba
import numpy as np
import pytest

from backsweep.jit.kernel_cache import cache_folder, contents_digest
from backsweep.store.distinct_kernels import same_record
from backsweep.store.ring_kernels import shorten_episode


@pytest.mark.kernels
def test_the_kernels_run_as_they_are_meant_to() -> None:
    interpreted = os.environ.get("NUMBA_DISABLE_JIT") == "1"
    checked = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
    assert bool(numba.config.DISABLE_JIT) == interpreted
    assert hasattr(shorten_episode, "py_func") != interpreted
    first, second = np.zeros(5, np.uint64), np.zeros(4, np.uint64)
    first[4] = 7
    if interpreted or checked:
        with pytest.raises(IndexError):
            same_record(first, second)  # reads beyond the end of the shorter one
    else:
        assert not same_record(first[:4], np.ones(4, np.uint64))


@pytest.mark.kernels
def test_compiled_code_with_checks_is_kept_apart_from_code_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm cache would skip the checks without a word."""
    folder = cache_folder()
    assert folder is not None
    assert folder.name.endswith(contents_digest())
    digests = set()
    for checks in (None, 1):
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", checks)
        digests.add(contents_digest.__wrapped__())
    assert len(digests) == 2
