"""One learner's act and update as fixed programs over fixed buffers.

The caller fills the host arrays with numbers (rows of an `DeviceObservations`, actions, rewards, ...), calls `act` or
`update`, and reads the results after `wait`. On a GPU both are recorded once as CUDA graphs, copies to and from the
device included, so that each is a single launch; on a CPU they are direct calls, with the same results as
`Learner.update` and `Learner.greedy`.

    current ──act──> best          first, second, action, reward, discount, weight (, known) ──update──> td_error

Where targets are given (graph values, EBU's table) most successors need not be evaluated. A recorded program cannot
leave some out, so there is a second one with places for a few of them; it is used whenever they are enough.

The first executor for a network's shape compiles its kernels, which takes seconds; they are cached on disk.
Every executor has its own stream: while one executor's update runs on the GPU, the CPU can work on another's runs.

Precision on a GPU: plain float32 (or float64) through torch, except for float32 image networks over uint8 images,
which `fused` computes; it documents its precision.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from backsweep.agent.learner.arithmetic import Arithmetic, PreparedRows
from backsweep.agent.learner.device_observations import DeviceObservations, RowRange
from backsweep.agent.learner.double_dqn import AllCorrections, Learner
from backsweep.agent.learner.networks import Network, in_network_order
from backsweep.agent.learner.packed_arrays import PackedArrays
from backsweep.agent.learner.successors_kernels import gather_needed
from backsweep.agent.learner.value_programs import CHUNK, ValuePrograms, filled_up

WORD = 4  # bytes that the fused first convolution reads at once
VALUES_BYTES = 1 << 30  # bytes that `values` may use at once
ROWS_PER_PLACE = 8
"""Rows of a batch for each place of the program with few successors. Rows are without a target of the graph while they
are newer than the last plan: 1 to 3 of 64 on DoorKey, seldom more than 8."""
WARM_UPS = 2  # runs before a recording: they compile kernels and allocate the libraries' workspaces


class Executor:
    """Acts and updates of all runs of a learner, from observations on its device.

    Fill the arrays of a program only when its last run is done (`wait`): the device reads them asynchronously.

    Observations are kept in the network's order (images with their channels last), which `write` ensures. After
    `Learner.keep` make a new executor. The learner's own methods wait for the device where needed, so state and
    statistics can be read in between.

    Parameters
    ----------
    learner
        The learner whose runs act and learn.
    observations
        The observations, on the learner's device.
    batch_size
        Rows in each run's batch.
    graphs
        Record the programs as CUDA graphs. Without effect on a CPU.
    fused
        Use the fused kernels; None uses them where they apply.
    """

    def __init__(
        self,
        learner: Learner,
        observations: DeviceObservations,
        batch_size: int,
        *,
        graphs: bool = True,
        fused: bool | None = None,
    ) -> None:
        self.learner = learner
        self.observations = observations
        self._device = learner.device
        self._on_gpu = self._device.type == "cuda"
        self._stream = torch.cuda.Stream(self._device) if self._on_gpu else None  # type: ignore[no-untyped-call]
        # Made once and entered often: every act and update goes through it.
        self._in_stream: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
        )
        runs, number = learner.runs, np.dtype(learner.settings.dtype)
        batch = (runs, batch_size)
        few = self._on_gpu and learner.rule.gives_targets and bool((learner.shares == 1).all())
        self._places = batch_size // ROWS_PER_PLACE if few else 0

        self._seen = PackedArrays({"current": ((runs,), np.int64)}, self._device)
        numbers = ("reward", "discount", "weight", *(("known",) if learner.rule.gives_targets else ()))
        self._inputs = PackedArrays(
            {
                "rows": ((runs, 2, batch_size), np.int64),
                "action": (batch, np.int64),
                **dict.fromkeys(numbers, (batch, number)),
                **({"tried": ((*batch, learner.network.actions), number)} if learner.rule.imitation else {}),
                "images": ((runs, batch_size + self._places if self._places else 0), np.int64),
                "place": (batch if self._places else (runs, 0), np.int64),
                "corrections": ((2, 2), number),
            },
            self._device,
        )
        self._best = PackedArrays({"best": ((runs,), np.int64)}, self._device)
        self._errors = PackedArrays({"td_error": (batch, number)}, self._device)

        # What the caller fills and reads: R runs, B rows of a batch.
        host = self._inputs.host
        self.current: NDArray[np.int64] = self._seen.host["current"]
        """In: the device row of what each run sees now, (R,)."""
        self.rows: NDArray[np.int64] = host["rows"]
        """In, as are all that follow up to `known`: the device rows of observations and of successors, (R, 2, B).

        In one piece: two halves of it would be neighbours in memory for a single run only, which is another type for
        compiled code, and so another minute of compiling.
        """
        self.first: NDArray[np.int64] = self.rows[:, 0]
        self.second: NDArray[np.int64] = self.rows[:, 1]
        self.action: NDArray[np.int64] = host["action"]
        self.reward, self.discount, self.weight = host["reward"], host["discount"], host["weight"]
        self.known: NDArray[np.floating] | None = host.get("known")
        self.tried: NDArray[np.floating] | None = host.get("tried")
        self.best: NDArray[np.int64] = self._best.host["best"]
        """Out: the greedy action of each run, (R,)."""
        self.td_error: NDArray[np.floating] = self._errors.host["td_error"]
        """Out: (R, B), in the networks' units."""

        self._fused_arithmetic = self._make_fused(fused)
        self._act: Callable[[], None] = self._act_program
        self._update: Callable[[], None] = self._update_program
        self._short_update: Callable[[], None] = self._short_update_program
        self._value_programs: ValuePrograms | None = None
        self._answers: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None
        self._asked: NDArray[np.int64] | None = None  # whose answers are still in the networks' units
        if self._on_gpu:
            self._prepare_programs(graphs)
        if self._on_gpu and graphs:
            self._value_programs = ValuePrograms(
                self._both,
                self._warmed_up_and_recorded,
                self._arithmetic.move,
                learner.network.actions,
                number,
                self._device,
            )

    @property
    def scales(self) -> NDArray[np.float64]:
        """The factor from each run's rewards to the networks' units."""
        return self.learner.scales

    # -- what the caller does -------------------------------------------------------------------------------------

    def write(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        """Write observations (n, ...) to the device rows `places` (n,), before anything enqueued later."""
        if len(places):
            with self._in_stream:
                self.observations.write(places, in_network_order(self.learner.network, observations))

    def send(self, rows: RowRange) -> None:
        """Enqueue the copy of some rows of observations to the device."""
        with self._in_stream:
            rows.send()

    def act(self) -> None:
        """Enqueue the computation of the best action of each run."""
        with self._in_stream:
            self._act()

    def update(self) -> None:
        """Enqueue one gradient step of every run; rewards and given targets are in the task's units."""
        scale = self.learner.scales[:, None]
        self.reward *= scale
        if self.known is not None:
            self.known *= scale
        if self.tried is not None:
            self.tried *= scale[..., None]
        if not self._on_gpu:
            self._direct_update(self.learner.count())
            return
        host = self._inputs.host
        host["corrections"][:] = self.learner.count()
        update = self._update
        if self._places and self.known is not None:
            needed = host["images"], host["place"]
            if gather_needed(self.rows, self.discount, self.known, self.learner.shares, *needed):
                update = self._short_update
        with self._in_stream:
            update()

    @property
    def done(self) -> bool:
        """Whether everything that was enqueued here is done."""
        return self._stream is None or bool(self._stream.query())

    def wait(self) -> None:
        """Wait until everything that was enqueued here is done."""
        if self._stream is not None:
            self._stream.synchronize()

    def copy_target(self) -> None:
        """Enqueue the copy of the target networks."""
        with self._in_stream:
            self.learner.copy_target()

    @torch.no_grad()
    def values(self, runs: NDArray[np.int64], rows: NDArray[np.int64], *, target: bool) -> NDArray[np.floating]:
        """Return the values (n, T, A) of device rows (n, T) by the networks of `runs` (n,)."""
        with self._in_stream:
            chosen, index = (torch.from_numpy(array).to(self._device) for array in (runs, rows))
            flat = self.learner.target if target else self.learner.online
            return self._in_units(self._values(flat[chosen], index), runs)

    def ask_both(self, runs: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Enqueue the values of device rows (n, CHUNK) by both networks of runs (n,), for `answers`."""
        if self._value_programs is None or 2 * filled_up(len(runs)) > self._runs_at_once(CHUNK):
            self._answers = (self.values(runs, rows, target=True), self.values(runs, rows, target=False))
            self._asked = None
            return
        with self._in_stream:
            found = self._value_programs.enqueue(runs, rows)
        self._answers = (found[0], found[1])
        self._asked = runs

    def answers(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the values (n, CHUNK, A) that `ask_both` asked for, after `wait`. The next request overwrites them."""
        assert self._answers is not None, "nothing was asked"
        if self._asked is None:
            return self._answers
        target, online = self._answers
        return self._in_units(target, self._asked), self._in_units(online, self._asked)

    def _in_units(self, values: NDArray[np.floating], runs: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return values (n, ...) of runs (n,) in the task's units."""
        scale = self.learner.scales[runs].astype(values.dtype)
        return values / scale.reshape(-1, *[1] * (values.ndim - 1))

    def _both(self, runs: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        learner = self.learner
        views = learner.network.layout.views(torch.cat([learner.target[runs], learner.online[runs]]))
        values = self._arithmetic.network.forward(views, self._prepared(rows.repeat(2, 1)))
        return values.view(2, *rows.shape, -1)

    def _values(self, flat: torch.Tensor, index: torch.Tensor) -> NDArray[np.floating]:
        """Return the values (n, T, A) of device rows (n, T) by networks with the parameters (n, size)."""
        learner = self.learner
        at_once = self._runs_at_once(index.shape[1])
        values = []
        for start in range(0, len(flat), at_once):
            views = learner.network.layout.views(flat[start : start + at_once])
            values.append(self._arithmetic.network.forward(views, self._prepared(index[start : start + at_once])))
        found: NDArray[np.floating] = torch.cat(values).cpu().numpy()
        return found

    def _runs_at_once(self, steps: int) -> int:
        """Return the number of runs that `values` takes at once: one on the CPU, which rounds as for a single run."""
        learner = self.learner
        parameters = learner.dtype.itemsize * learner.network.layout.size
        each = parameters + steps * learner.network.bytes_per_row(learner.dtype, fused=self._fused)
        return max(1, VALUES_BYTES // each) if self._on_gpu else 1

    @property
    def _fused(self) -> bool:
        return self._fused_arithmetic is not None

    @property
    def _arithmetic(self) -> Arithmetic:
        # Not kept: a learner that loads a saved state may compute its convolutions in another way from then on.
        return self.learner.arithmetic if self._fused_arithmetic is None else self._fused_arithmetic

    # -- the programs ---------------------------------------------------------------------------------------------

    def _make_fused(self, fused: bool | None) -> Arithmetic | None:
        """Return the fused kernels where they are wanted and apply."""
        if self._on_gpu and fused is not False:
            kept = self.observations
            reason = reason_against_fused(self.learner.network, self.learner.dtype, kept.shape, kept.dtype)
            if reason is None:
                from backsweep.agent.learner.triton import FusedArithmetic

                return FusedArithmetic(self.learner, self.observations)
            if fused:
                raise ValueError(f"the fused kernels cannot be used: {reason}")
        return None

    def _prepared(self, index: torch.Tensor) -> torch.Tensor:
        """Return the networks' inputs for device rows (R, n): the fused networks take the rows themselves."""
        if self._fused:
            return index
        return self.learner.network.prepare(self.observations.in_order(index), self.learner.dtype)

    def _prepared_batch(self, index: torch.Tensor, halves: int) -> torch.Tensor:
        """Return the networks' inputs for a batch of device rows (R, n)."""
        return self.learner.prepare_batch(self.observations.in_order(index), halves, self.discount, self.known)

    @torch.no_grad()
    def _act_program(self) -> None:
        current = self._seen.pinned["current"]  # the fused kernels read host memory directly
        if not self._fused:
            self._seen.send()
            current = self._seen.device["current"]
        self._arithmetic.act(self.learner.online_views, self._prepared(current[:, None]), self._best)

    def _update_program(self) -> None:
        self._inputs.send(self._arithmetic.move)
        corrections = self._inputs.device["corrections"]
        self._direct_update((corrections[0], corrections[1]))

    @torch.no_grad()
    def _short_update_program(self) -> None:
        self._inputs.send(self._arithmetic.move)
        inputs = self._inputs.device
        corrections = inputs["corrections"]
        prepared = self._prepared(inputs["images"])
        self._learn(prepared, self._places, (corrections[0], corrections[1]), inputs["place"])

    @torch.no_grad()
    def _direct_update(self, corrections: AllCorrections) -> None:
        index, halves = self._inputs.device["rows"].flatten(1), 2
        if not self._on_gpu and self.learner.needs_no_successors(self.known):
            index, halves = self._inputs.device["rows"][:, 0], 1
        prepared = index if self._fused else self._prepared_batch(index, halves)
        self._learn(prepared, (halves - 1) * self.action.shape[1], corrections)

    def _learn(
        self, prepared: torch.Tensor, successors: int, corrections: AllCorrections, place: torch.Tensor | None = None
    ) -> None:
        inputs = self._inputs.device
        rows = PreparedRows(
            prepared,
            successors,
            inputs["action"],
            inputs["reward"],
            inputs["discount"],
            inputs["weight"],
            inputs.get("known"),
            inputs.get("tried"),
            place,
        )
        td_error = self.learner.learn(self._arithmetic, rows, corrections)
        self._arithmetic.move(td_error, self._errors.pinned["td_error"])

    def _prepare_programs(self, graphs: bool) -> None:
        """Run both programs on empty inputs, restore the learner, and record them."""
        torch.cuda.synchronize(self._device)
        changing = {name: tensor for name, tensor in self.learner.tensors().items() if not name.endswith("target")}
        self._inputs.host["corrections"][:] = 1.0
        with self._in_stream:
            # Kept in the programs' own stream: from another one, a busy GPU might copy what they have changed already.
            kept = {name: tensor.clone() for name, tensor in changing.items()}
            for _ in range(WARM_UPS):
                self._act_program()
                self._update_program()
                if self._places:
                    self._short_update_program()
            for name, tensor in changing.items():
                tensor.copy_(kept[name])
        self.wait()
        if graphs:
            del kept
            torch.cuda.empty_cache()  # recordings have their own memory
            self._act = self._recorded(self._act_program)
            self._update = self._recorded(self._update_program)
            if self._places:
                self._short_update = self._recorded(self._short_update_program)

    @torch.no_grad()
    def _warmed_up_and_recorded(self, program: Callable[[], None]) -> Callable[[], None]:
        for _ in range(WARM_UPS):
            program()
        self.wait()
        return self._recorded(program)

    def _recorded(self, program: Callable[[], None]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        # Other threads may keep using the GPU while this one records.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            program()
        return graph.replay


def reason_against_fused(
    network: Network, dtype: torch.dtype, shape: tuple[int, ...], observations: DTypeLike
) -> str | None:
    """Return why the fused arithmetic does not apply to a network over such observations, None if it does."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    if dtype != torch.float32 or network.form != "image" or np.dtype(observations) != np.uint8:
        return "they are for float32 networks over uint8 images"
    stage = network.stages[0]
    if shape != network.input_shape:
        return f"the observations are {shape}, the network takes {network.input_shape}"
    if any(number * stage.channels % WORD for number in (stage.width, stage.stride, stage.kernel)):
        return "rows of images and strides of the first convolution must be multiples of four bytes"
    return None
