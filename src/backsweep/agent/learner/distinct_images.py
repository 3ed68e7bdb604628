"""Evaluates each distinct image of a batch once, on a CPU.

States come back: an action that changes nothing leads to the state itself, and a small task has few states. Equal
images have equal values, so an update needs the values of the distinct ones, and the gradients of equal images add up:

    images (n) ──which are distinct──> rows (d), index (n)      values (n) = values of rows (d) at index

The rows are ordered so that the observations come first and the successors last, with images that are both in between.
So each half of a batch is one slice:

    rows      observations only | both | successors only
              [------ observations ----]
                                [------ successors -----]

A successor whose value does not matter (its target is given, or the episode ended) is not evaluated. Images that differ
may still have equal parts; see `shared_patches`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.learner import distinct_images_kernels
from backsweep.agent.learner.arithmetic import Evaluates
from backsweep.agent.learner.convolutions import DirectNetwork, Path, network_by
from backsweep.agent.learner.cpu_arithmetic import CpuArithmetic
from backsweep.agent.learner.networks import Network, Parameters, Tape
from backsweep.agent.learner.shared_patches import SharedNetwork, SharedPatches, SharedTape, share_patches
from backsweep.jit.random_streams import named_generator

MOST_VIEWS = 8  # sets of parameters whose runs' views are kept; a learner has three, with error networks six


class DistinctImages:
    """The distinct images of the last batch, prepared for the first layer; each run has its own number of them."""

    def __init__(self, network: Network, computed: Network | DirectNetwork) -> None:
        self._network, self._computed = network, computed
        self._weights = np.zeros(0, np.uint64)
        self.runs: list[torch.Tensor | SharedPatches] = []
        """Of each run: its shared patches, or what the network's `prepare` returns for its distinct images."""
        self.counts: list[int] = []
        """How many distinct images each run has."""

    def prepare(
        self, observations: torch.Tensor, halves: int, wanted: NDArray[np.bool_], dtype: torch.dtype
    ) -> torch.Tensor:
        """Take the images (R, n, ...) of a batch, of which only the wanted (R, n) count; return the index (R, n)."""
        runs, count = observations.shape[:2]
        words = _words(observations.reshape(runs, count, -1).numpy())
        if len(self._weights) != words.shape[-1]:
            draw = named_generator(0, "image hash").integers(0, 1 << 63, words.shape[-1], np.uint64)
            self._weights = draw * np.uint64(2) + np.uint64(1)
        index, order = np.empty((runs, count), np.int64), np.empty(count, np.int64)
        self.runs, self.counts = [], []
        for run in range(runs):
            half = count // halves
            found = distinct_images_kernels.distinct_rows(
                words[run], self._weights, wanted[run], half, order, index[run]
            )
            rows = observations[run : run + 1, torch.from_numpy(order[:found])]
            shared = share_patches(rows, self._network, dtype)
            self.runs.append(self._computed.prepare(rows, dtype) if shared is None else shared)
            self.counts.append(found)
        return torch.from_numpy(index)

    def slice(self, run: int, low: int, high: int) -> torch.Tensor | SharedPatches:
        """Return the prepared images low..high-1 of a run."""
        prepared = self.runs[run]
        if isinstance(prepared, SharedPatches):
            return prepared.slice(low, high)
        each = prepared.shape[1] // self.counts[run]
        return prepared[:, each * low : each * high]


def _words(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return rows (R, n, numbers) as 64-bit words, filled up with zeros where they do not fit."""
    found = np.ascontiguousarray(rows).view(np.uint8)
    if missing := -found.shape[-1] % 8:
        found = np.concatenate([found, np.zeros((*found.shape[:2], missing), np.uint8)], axis=-1)
    return found.view(np.uint64)


@dataclass(frozen=True)
class DistinctTape(Tape):
    """The tapes of the runs' distinct images, and which image each row of the batch is."""

    inputs: tuple[torch.Tensor, ...] = ()
    runs: tuple[tuple[Tape, int], ...] = ()
    """Each run's tape, and how many images it is of."""
    index: torch.Tensor | None = None
    """(R, n)."""

    def first(self, rows: int, of: int) -> DistinctTape:
        assert self.index is not None
        index = self.index[:, : self.index.shape[1] // of * rows]
        counts = (index.numpy().max(axis=1) + 1).tolist()
        runs = tuple((tape.first(count, all_), count) for (tape, all_), count in zip(self.runs, counts, strict=True))
        return DistinctTape(runs=runs, index=index)


class DistinctNetwork:
    """A network whose inputs are the index (R, n) of rows in `DistinctImages`."""

    def __init__(self, network: Network, path: Path, images: DistinctImages) -> None:
        self._computed: Evaluates = network_by(network, path)
        self._shared, self._images = SharedNetwork(network), images
        self._views: dict[int, tuple[Parameters, list[dict[str, torch.Tensor]]]] = {}

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (R, n, A) of rows (R, n)."""
        return self.forward_with_tape(parameters, prepared)[0]

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (R, n, A) of rows (R, n) and what `backward` needs."""
        index = prepared.numpy()  # numpy's operations on small arrays take a fraction of the time of torch's
        low, high = index.min(axis=1), index.max(axis=1) + 1
        shifted = torch.from_numpy(index - low[:, None])
        values, tapes = [], []
        for run, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            images = self._images.slice(run, first, last)
            of_run = self._of_run(parameters, run)
            if isinstance(images, SharedPatches):
                found, tape = self._shared.forward_with_tape(of_run, images)
            else:
                found, tape = self._computed.forward_with_tape(of_run, images)
            values.append(found[:, shifted[run]])
            tapes.append((tape, last - first))
        return values[0] if len(values) == 1 else torch.cat(values), DistinctTape(runs=tuple(tapes), index=shifted)

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (R, n, A) of the values."""
        assert isinstance(tape, DistinctTape)
        assert tape.index is not None
        for run, (of_run, count) in enumerate(tape.runs):
            summed = gradient.new_zeros(1, count, gradient.shape[-1])
            summed[0].index_add_(0, tape.index[run], gradient[run])
            network = self._shared if isinstance(of_run, SharedTape) else self._computed
            network.backward(self._of_run(parameters, run), of_run, summed, self._of_run(out, run))

    def _of_run(self, parameters: Parameters, run: int) -> Parameters:
        """Return one run's views of stacked parameters. They are made once: making them takes longer than a layer."""
        runs = len(next(iter(parameters.values())))
        if runs == 1:
            return parameters
        known = self._views.get(id(parameters))
        if known is None or known[0] is not parameters:
            if len(self._views) >= MOST_VIEWS:  # those of runs that have left
                self._views.clear()
            made = [{name: view[place : place + 1] for name, view in parameters.items()} for place in range(runs)]
            known = self._views[id(parameters)] = parameters, made
        return known[1][run]


class DistinctArithmetic(CpuArithmetic):
    """Updates from each distinct image of a batch; acting and other values are computed as usual."""

    def __init__(self, network: Network, error_network: Network | None, path: Path = "patches") -> None:
        super().__init__(network, error_network)
        self.path = path
        self.images = DistinctImages(network, network_by(network, path))
        self._learning = DistinctNetwork(network, path, self.images)
        if error_network is not None:
            self.error_network = DistinctNetwork(error_network, path, self.images)

    @property
    def learning_network(self) -> Evaluates:
        """The network in an update."""
        return self._learning


def wanted_rows(
    discount: NDArray[np.floating], known: NDArray[np.floating] | None, shares: NDArray[np.float64], halves: int
) -> NDArray[np.bool_]:
    """Return which images (R, B or 2 B) of a batch an update needs: successors only where a target depends on them."""
    first = np.ones(discount.shape, bool)
    if halves == 1:
        return first
    second = discount != 0
    if known is not None:
        second &= np.isnan(known) | (shares != 1)[:, None]
    return np.concatenate([first, second], axis=1)
