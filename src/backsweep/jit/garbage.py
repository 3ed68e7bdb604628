"""Python's search for unused objects, made rarer while numba compiles.

numba makes millions of small objects, nearly all of which are freed without that search. At Python's usual rate the
search takes nearly a tenth of the time of compiling, and finds little.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

NEW_OBJECTS = 50_000
"""New objects between two searches among these."""
SEARCHES = 1_000
"""Searches among new objects before older ones are searched too; some thirty megabytes more are in use meanwhile."""


@contextlib.contextmanager
def rarer_searches() -> Iterator[None]:
    """Search for unused objects less often within the block, unless that is already so."""
    first, *others = gc.get_threshold()
    if not 0 < first < NEW_OBJECTS:
        yield
        return
    gc.set_threshold(NEW_OBJECTS, SEARCHES, SEARCHES)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
