"""Values of the networks of several runs, computed in chunks that fit in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.memory_estimate import bytes_per_row
from backsweep.agent.learner.networks import Parameters, network_tensor

PIECE_BYTES = {"cpu": 1 << 24, "cuda": 1 << 31}
"""Memory for the layers of a chunk. On a CPU small chunks are twice as fast: they stay in the cache, and the
allocator reuses the same memory instead of new pages."""


@torch.no_grad()
def values_of_runs(learner: Learner, runs: Sequence[int], observations: NDArray[Any]) -> NDArray[np.floating]:
    """Return the online values (runs, rows, actions) of some runs for observations (runs, rows, ...), in task units.

    Observations that are the same for all runs (a broadcast first axis) go to the device and through `prepare` once.
    """
    network, rows = learner.network, observations.shape[1]
    shared = observations.strides[0] == 0
    most = PIECE_BYTES.get(learner.device.type, PIECE_BYTES["cpu"])
    room = most // bytes_per_row(network, learner.dtype, fused=False)
    some_rows = max(1, min(rows, room))
    some_runs = max(1, room // some_rows)
    values = np.empty((len(runs), rows, network.actions), torch.empty(0, dtype=learner.dtype).numpy().dtype)
    for row in range(0, rows, some_rows):
        prepared = _prepared(learner, observations[:1, row : row + some_rows]) if shared else None
        for first in range(0, len(runs), some_runs):
            piece = slice(first, min(first + some_runs, len(runs)))
            if prepared is None:
                given = _prepared(learner, observations[piece, row : row + some_rows])
            else:
                given = prepared.expand(piece.stop - piece.start, *prepared.shape[1:])
            found = network.forward(_parameters(learner, runs[piece]), given)
            values[piece, row : row + some_rows] = found.cpu().numpy()
    scale = learner.scales[list(runs)].astype(values.dtype)
    in_units: NDArray[np.floating] = values / scale[:, None, None]
    return in_units


def _prepared(learner: Learner, observations: NDArray[Any]) -> torch.Tensor:
    tensor = network_tensor(learner.network, observations).to(learner.device, non_blocking=True)
    return learner.network.prepare(tensor, learner.dtype)


def _parameters(learner: Learner, runs: Sequence[int]) -> Parameters:
    """Return some runs' parameters, as views if the runs are adjacent, which they mostly are."""
    if list(runs) == list(range(runs[0], runs[0] + len(runs))):
        return learner.network.layout.views(learner.online[runs[0] : runs[0] + len(runs)])
    return learner.network.layout.views(learner.online[torch.tensor(list(runs), device=learner.device)])
