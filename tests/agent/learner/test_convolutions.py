"""Every way to compute convolutions gives the same values and gradients, and the choice of one is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import torch

from backsweep.agent.learner import convolutions
from backsweep.agent.learner.convolutions import PATHS, network_by
from backsweep.agent.learner.distinct_images import DistinctArithmetic
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule

NETWORKS = {
    "several": Network("image", (21, 17, 3), 4, ((8, 5, 3), (6, 3, 1), (5, 2, 1)), (16,), 1 / 255),
    "one channel": Network("image", (8, 8, 1), 3, ((4, 3, 2),), (), 1 / 255),
    "errors": Network("image", (12, 12, 4), 3, ((4, 4, 2),), (8,), 1.0, non_negative=True),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("path", PATHS)
def test_paths_agree(network: Network, path: str) -> None:
    generator = np.random.default_rng(0)
    flat = network.initial([generator], torch.float64)
    parameters = network.layout.views(flat)
    images = torch.from_numpy(generator.integers(0, 256, (1, 10, *network.input_shape), np.uint8))
    gradient = torch.from_numpy(generator.normal(size=(1, 5, network.actions)))
    results = []
    for name in ("patches", path):
        computed = network_by(network, name)  # type: ignore[arg-type]
        out = network.layout.views(torch.full_like(flat, torch.nan))
        values, tape = computed.forward_with_tape(parameters, computed.prepare(images, torch.float64))
        computed.backward(parameters, tape.first(1, 2), gradient, out)
        results.append((values, out))
    (expected, slopes), (values, found) = results
    torch.testing.assert_close(values, expected, rtol=1e-10, atol=1e-12)
    for name, slope in slopes.items():
        torch.testing.assert_close(found[name], slope, rtol=1e-9, atol=1e-11)
        assert float(slope.abs().max()) > 0


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(convolutions, "cache_folder", lambda: tmp_path)
    convolutions._chosen.cache_clear()
    return tmp_path / convolutions.FILE


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((1.0, 0.5, 0.7), "mixed"), ((1.0, 0.97, 0.98), "patches"), ((1.0, 2.0, 0.9), "direct")],
)
def test_the_fastest_is_chosen_and_kept(
    seconds: tuple[float, ...], expected: str, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(network: Network, batch_size: int) -> dict[str, float]:
        measured.append(batch_size)
        return dict(zip(PATHS, seconds, strict=True))

    monkeypatch.setattr(convolutions, "measure", measure)
    network = NETWORKS["several"]
    assert convolutions.fastest_path(network, 16, "float32") == expected
    convolutions._chosen.cache_clear()  # as in another process
    assert convolutions.fastest_path(network, 16, "float32") == expected
    assert measured == [16]
    assert convolutions.fastest_path(network, 32, "float32") == expected
    assert measured == [16, 32]
    assert sorted(json.loads(kept.read_text()).values()) == [expected] * 2
    assert convolutions.fastest_path(network, 16, "float64") == "patches"
    assert measured == [16, 32]


@pytest.mark.parametrize("content", ["{", "[]", '{"a": "quickest"}', '{"a": 3}'])
def test_a_damaged_file_is_written_anew(content: str, kept: Path) -> None:
    kept.write_text(content)
    chosen = convolutions.fastest_path(NETWORKS["one channel"], 2, "float32")
    assert list(json.loads(kept.read_text()).values()) == [chosen]


def test_processes_may_keep_their_choices_at_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, write = [], convolutions.files.write_all

    def other_first(file: IO[bytes], data: bytes) -> None:
        writing.append(data)
        if len(writing) == 1:
            convolutions._keep("other", "direct")
            assert json.loads(kept.read_text()) == {"other": "direct"}
        write(file, data)

    monkeypatch.setattr(convolutions.files, "write_all", other_first)
    convolutions._keep("own", "mixed")
    assert json.loads(kept.read_text()) == {"own": "mixed"}
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_the_measurement_covers_every_path() -> None:
    seconds = convolutions.measure(NETWORKS["several"], 4, rounds=1)
    assert set(seconds) == set(PATHS)
    assert all(value > 0 for value in seconds.values())


def test_a_resumed_learner_keeps_its_path() -> None:
    rule, network = TargetRule(kind="discor"), NETWORKS["several"]
    first = Learner(network, rule, LearnerSettings(convolutions="mixed"), (0,))
    second = Learner(network, rule, LearnerSettings(convolutions="direct"), (1,))
    arrays, values = first.state()
    second.load_state(arrays, values)
    assert isinstance(second.arithmetic, DistinctArithmetic)
    assert second.convolutions == second.arithmetic.path == "mixed"
    # A save of an earlier release does not name it.
    del values["convolutions"]
    second.load_state(arrays, values)
    assert second.convolutions == "patches"
