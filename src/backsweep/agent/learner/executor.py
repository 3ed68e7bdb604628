"""One learner's act and update as fixed programs over fixed buffers.

The caller fills the host arrays with numbers (rows of an `DeviceObservations`, actions, rewards, ...), calls `act` or
`update`, and reads the results after `wait`. On a GPU both are recorded once as CUDA graphs, copies to and from the
device included, so that each is a single launch; on a CPU they are direct calls, with the same results as
`Learner.update` and `Learner.greedy`.

    current ──act──> best          first, second, action, reward, discount, weight (, known) ──update──> td_error

The first executor for a network's shape compiles its kernels, which takes seconds; they are cached on disk.
Every executor has its own stream: while one executor's update runs on the GPU, the CPU can work on another's lanes.

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
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import AllCorrections, Learner
from backsweep.agent.learner.memory_estimate import bytes_per_row, working_bytes
from backsweep.agent.learner.networks import Network, in_network_order
from backsweep.agent.learner.packed import PackedArrays
from backsweep.agent.learner.value_programs import CHUNK, ValuePrograms, filled_up

WORD = 4  # bytes that the fused first convolution reads at once
VALUES_BYTES = 1 << 30  # bytes that `values` may use at once
WARM_UPS = 2  # runs before a recording: they compile kernels and allocate the libraries' workspaces


class Executor:
    """Acts and updates of all lanes of a learner, from observations in a bank.

    Fill the arrays of a program only when its last run is done (`wait`): the device reads them asynchronously.

    The bank holds observations in the network's order (images with their channels last), which `write` ensures. After
    `Learner.keep` make a new executor. The learner's own methods wait for the device where needed, so state and
    statistics can be read in between.

    Parameters
    ----------
    learner
        The learner whose lanes act and learn.
    bank
        The observations, on the learner's device.
    batch_size
        Rows in each lane's batch.
    graphs
        Record the programs as CUDA graphs. Without effect on a CPU.
    fused
        Use the fused kernels; None uses them where they apply.
    """

    def __init__(
        self,
        learner: Learner,
        bank: DeviceObservations,
        batch_size: int,
        *,
        graphs: bool = True,
        fused: bool | None = None,
    ) -> None:
        self.learner = learner
        self.bank = bank
        self._device = learner.device
        self._on_gpu = self._device.type == "cuda"
        self._stream = torch.cuda.Stream(self._device) if self._on_gpu else None  # type: ignore[no-untyped-call]
        # Made once and entered often: every act and update goes through it.
        self._in_stream: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
        )
        lanes, number = learner.lanes, np.dtype(learner.settings.dtype)
        batch = (lanes, batch_size)

        self._seen = PackedArrays({"current": ((lanes,), np.int64)}, self._device)
        numbers = ("reward", "discount", "weight", *(("known",) if learner.rule.gives_targets else ()))
        self._inputs = PackedArrays(
            {
                "rows": ((lanes, 2, batch_size), np.int64),
                "action": (batch, np.int64),
                **dict.fromkeys(numbers, (batch, number)),
                "corrections": ((2, 2), number),
            },
            self._device,
        )
        self._best = PackedArrays({"best": ((lanes,), np.int64)}, self._device)
        self._errors = PackedArrays({"td_error": (batch, number)}, self._device)

        host = self._inputs.host
        self.current: NDArray[np.int64] = self._seen.host["current"]
        self.rows: NDArray[np.int64] = host["rows"]
        self.first: NDArray[np.int64] = self.rows[:, 0]
        self.second: NDArray[np.int64] = self.rows[:, 1]
        self.action: NDArray[np.int64] = host["action"]
        self.reward, self.discount, self.weight = host["reward"], host["discount"], host["weight"]
        self.known: NDArray[np.floating] | None = host.get("known")
        self.best: NDArray[np.int64] = self._best.host["best"]
        self.td_error: NDArray[np.floating] = self._errors.host["td_error"]

        self._arithmetic = self._choose_arithmetic(fused)
        self._act: Callable[[], None] = self._act_program
        self._update: Callable[[], None] = self._update_program
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
        """The factor from each lane's rewards to the networks' units."""
        return self.learner.scales

    # -- what the caller does -------------------------------------------------------------------------------------

    def write(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        """Write observations (n, ...) to the bank's rows `places` (n,), before anything enqueued later."""
        if len(places):
            with self._in_stream:
                self.bank.write(places, in_network_order(self.learner.network, observations))

    def act(self) -> None:
        """Enqueue the computation of the best action of each lane."""
        with self._in_stream:
            self._act()

    def update(self) -> None:
        """Enqueue one gradient step of every lane; rewards and given targets are in the task's units."""
        scale = self.learner.scales[:, None]
        self.reward *= scale
        if self.known is not None:
            self.known *= scale
        if not self._on_gpu:
            self._direct_update(self.learner.count())
            return
        self._inputs.host["corrections"][:] = self.learner.count()
        with self._in_stream:
            self._update()

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
    def values(self, lanes: NDArray[np.int64], rows: NDArray[np.int64], *, target: bool) -> NDArray[np.floating]:
        """Return the values (n, T, A) of bank rows (n, T) by the networks of `lanes` (n,)."""
        with self._in_stream:
            chosen, index = (torch.from_numpy(array).to(self._device) for array in (lanes, rows))
            flat = self.learner.target if target else self.learner.online
            return self._in_units(self._values(flat[chosen], index), lanes)

    def ask_both(self, lanes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Enqueue the values of bank rows (n, CHUNK) by the target and online networks of lanes (n,), for `answers`."""
        if self._value_programs is None or 2 * filled_up(len(lanes)) > self._lanes_at_once(CHUNK):
            self._answers = (self.values(lanes, rows, target=True), self.values(lanes, rows, target=False))
            self._asked = None
            return
        with self._in_stream:
            found = self._value_programs.enqueue(lanes, rows)
        self._answers = (found[0], found[1])
        self._asked = lanes

    def answers(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the values (n, CHUNK, A) that `ask_both` asked for, after `wait`. The next request overwrites them."""
        assert self._answers is not None, "nothing was asked"
        if self._asked is None:
            return self._answers
        target, online = self._answers
        return self._in_units(target, self._asked), self._in_units(online, self._asked)

    def _in_units(self, values: NDArray[np.floating], lanes: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return values (n, ...) of lanes (n,) in the task's units."""
        scale = self.learner.scales[lanes].astype(values.dtype)
        return values / scale.reshape(-1, *[1] * (values.ndim - 1))

    def _both(self, lanes: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        learner = self.learner
        views = learner.network.layout.views(torch.cat([learner.target[lanes], learner.online[lanes]]))
        values = self._arithmetic.network.forward(views, self._prepared(rows.repeat(2, 1)))
        return values.view(2, *rows.shape, -1)

    def _values(self, flat: torch.Tensor, index: torch.Tensor) -> NDArray[np.floating]:
        """Return the values (n, T, A) of bank rows (n, T) by networks with the parameters (n, size)."""
        learner = self.learner
        at_once = self._lanes_at_once(index.shape[1])
        parts = []
        for start in range(0, len(flat), at_once):
            views = learner.network.layout.views(flat[start : start + at_once])
            parts.append(self._arithmetic.network.forward(views, self._prepared(index[start : start + at_once])))
        found: NDArray[np.floating] = torch.cat(parts).cpu().numpy()
        return found

    def _lanes_at_once(self, steps: int) -> int:
        """Return the number of lanes that `values` takes at once: one on the CPU, which rounds as for a single lane."""
        learner = self.learner
        parameters = learner.dtype.itemsize * learner.network.layout.size
        lane = parameters + steps * bytes_per_row(learner.network, learner.dtype, fused=self._fused)
        return max(1, VALUES_BYTES // lane) if self._on_gpu else 1

    @property
    def nbytes(self) -> int:
        """Estimated bytes on the device, without the bank's."""
        learner = self.learner
        lanes, size = self.action.shape
        return working_bytes(learner.network, learner.rule, lanes, size, learner.dtype, fused=self._fused)

    @property
    def _fused(self) -> bool:
        return self._arithmetic is not self.learner.arithmetic

    # -- the programs ---------------------------------------------------------------------------------------------

    def _choose_arithmetic(self, fused: bool | None) -> Arithmetic:
        if self._on_gpu and fused is not False:
            reason = reason_against_fused(self.learner.network, self.learner.dtype, self.bank.shape, self.bank.dtype)
            if reason is None:
                from backsweep.agent.learner.triton import FusedArithmetic

                return FusedArithmetic(self.learner, self.bank)
            if fused:
                raise ValueError(f"the fused kernels cannot be used: {reason}")
        return self.learner.arithmetic

    def _prepared(self, index: torch.Tensor) -> torch.Tensor:
        """Return the networks' inputs for bank rows (L, n): the fused networks take the rows themselves."""
        if self._fused:
            return index
        return self.learner.network.prepare(self.bank.in_order(index), self.learner.dtype)

    def _prepared_batch(self, index: torch.Tensor, halves: int) -> torch.Tensor:
        """Return the networks' inputs for a batch of bank rows (L, n)."""
        return self.learner.prepare_batch(self.bank.in_order(index), halves, self.discount, self.known)

    @torch.no_grad()
    def _act_program(self) -> None:
        current = self._seen.pinned["current"]  # which the fused kernels read where it lies
        if not self._fused:
            self._seen.send()
            current = self._seen.device["current"]
        self._arithmetic.act(self.learner.online_views, self._prepared(current[:, None]), self._best)

    def _update_program(self) -> None:
        self._inputs.send(self._arithmetic.move)
        corrections = self._inputs.device["corrections"]
        self._direct_update((corrections[0], corrections[1]))

    @torch.no_grad()
    def _direct_update(self, corrections: AllCorrections) -> None:
        inputs = self._inputs.device
        index, halves = inputs["rows"].flatten(1), 2
        # A recorded program cannot look at numbers, so only the CPU leaves out successors that nobody asks for.
        if not self._on_gpu and self.learner.needs_no_successors(self.known):
            index, halves = inputs["rows"][:, 0], 1
        rows = PreparedRows(
            index if self._fused else self._prepared_batch(index, halves),
            halves,
            inputs["action"],
            inputs["reward"],
            inputs["discount"],
            inputs["weight"],
            inputs.get("known"),
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
            for name, tensor in changing.items():
                tensor.copy_(kept[name])
        self.wait()
        if graphs:
            del kept
            torch.cuda.empty_cache()  # recordings have their own memory
            self._act = self._recorded(self._act_program)
            self._update = self._recorded(self._update_program)

    @torch.no_grad()
    def _warmed_up_and_recorded(self, program: Callable[[], None]) -> Callable[[], None]:
        for _ in range(WARM_UPS):
            program()
        self.wait()
        return self._recorded(program)

    def _recorded(self, program: Callable[[], None]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        # Other threads may go on using the GPU while this one records.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            program()
        return graph.replay


def reason_against_fused(
    network: Network, dtype: torch.dtype, shape: tuple[int, ...], observations: DTypeLike
) -> str | None:
    """Return why the fused arithmetic does not apply to a network over a bank of observations, None if it does."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    if dtype != torch.float32 or network.form != "image" or np.dtype(observations) != np.uint8:
        return "they are for float32 networks over uint8 images"
    stage = network.stages[0]
    if shape != network.input_shape:
        return f"the bank holds {shape}, the network takes {network.input_shape}"
    if any(number * stage.channels % WORD for number in (stage.width, stage.stride, stage.kernel)):
        return "rows of images and strides of the first convolution must be multiples of four bytes"
    return None
