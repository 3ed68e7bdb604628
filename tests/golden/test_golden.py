"""The same seed gives the same rows as ever, on every machine and every version of Python."""

from __future__ import annotations

import json

import pytest
from traces import FILE, ROWS, SAMPLERS, trace

EXPECTED = json.loads(FILE.read_text())


def test_every_sampler_has_a_trace() -> None:
    assert set(EXPECTED) == set(SAMPLERS)
    assert {len(rows) for rows in EXPECTED.values()} == {ROWS}


@pytest.mark.kernels
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_first_thousand_rows_are_those_of_the_trace(name: str) -> None:
    assert trace(SAMPLERS[name]) == EXPECTED[name]
