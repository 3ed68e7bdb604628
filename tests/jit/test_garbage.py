"""The search for unused objects is rarer while kernels are compiled, and afterwards as before."""

from __future__ import annotations

import contextlib
import gc

import pytest

from backsweep.jit.garbage import NEW_OBJECTS, SEARCHES, rarer_searches


@pytest.mark.parametrize("usual", [(700, 10, 10), (0, 10, 10), (NEW_OBJECTS + 1, 5, 5)])
def test_the_users_setting_comes_back(usual: tuple[int, int, int]) -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(*usual)
        with contextlib.suppress(KeyError), rarer_searches():
            inside = gc.get_threshold()
            with rarer_searches():
                assert gc.get_threshold() == inside
            raise KeyError
        assert gc.get_threshold() == usual
        assert inside == ((NEW_OBJECTS, SEARCHES, SEARCHES) if usual[0] == 700 else usual)
    finally:
        gc.set_threshold(*before)
