"""An update as a CUDA graph: recorded once, then replayed without Python in between."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.world_model.sequences import Batch

WARM_UPS = 3


class RecordedUpdate:
    """Calls an update a few times, and then records it."""

    def __init__(self, update: Callable[[Batch], None]) -> None:
        """Take the function to record; its batches must all have the same shapes."""
        self._update = update
        self._calls = 0
        self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._inputs: Batch = {}
        self._graph = torch.cuda.CUDAGraph()

    def __call__(self, batch: Batch) -> None:
        """Update with a batch."""
        if self._calls < WARM_UPS:
            # On a stream of its own, as a recording needs it.
            self._side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._side):
                self._update(batch)
            torch.cuda.current_stream().wait_stream(self._side)
            self._calls += 1
            return
        new = not self._inputs
        if new:
            self._inputs = {name: tensor.clone() for name, tensor in batch.items()}
            torch.cuda.synchronize()
            with torch.cuda.graph(self._graph):
                self._update(self._inputs)
        for name, tensor in self._inputs.items():
            tensor.copy_(batch[name])
        self._graph.replay()
        if new:
            torch.cuda.synchronize()  # a fault shows here, not somewhere later
