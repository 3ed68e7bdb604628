"""Arrays in files: an attempt that fails leaves nothing behind, and takes nothing along."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from backsweep.jit.mapped_file import MappedFile


def test_a_file_that_cannot_be_made_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    with monkeypatch.context() as patched:
        patched.setattr(os, "truncate", refuse)
        with pytest.raises(OSError, match="no file of 800 bytes can be made") as refused:
            MappedFile(tmp_path / "map", (100,), np.float64)
    assert not list(tmp_path.iterdir())
    with open(tmp_path / "other", "w") as other:  # gets the number of the file that was closed
        del refused
        gc.collect()
        other.write("kept")
    assert (tmp_path / "other").read_text() == "kept"
