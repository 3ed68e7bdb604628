"""Double DQN for many runs at once: act, update, copy the target.

The state of a learner is a few flat tensors with one row per run; all operations on them are pure functions of
`networks`, `targets` and `optimisers` that treat each row independently.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.learner.arithmetic import IN_UNITS, STATISTICS, Arithmetic, Errors, PreparedRows, Trained
from backsweep.agent.learner.convolutions import Path
from backsweep.agent.learner.cpu_arithmetic import CpuArithmetic
from backsweep.agent.learner.discor import ErrorModel
from backsweep.agent.learner.distinct_images import DistinctArithmetic, wanted_rows
from backsweep.agent.learner.networks import Network, in_network_order, network_tensor
from backsweep.agent.learner.optimisers import Corrections, Optimiser, OptimiserSettings
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.targets import imitation_gradient
from backsweep.checks import is_int
from backsweep.jit.random_streams import named_generator
from backsweep.types import Batch

AllCorrections: TypeAlias = tuple[Corrections, Corrections]
"""`Corrections` of the Q-networks' optimiser and of the error networks', which only DisCor has."""


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """The settings of a learner apart from its network and rule."""

    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    """The optimiser and its constants."""
    dtype: str = "float32"
    """float32, or float64 for comparisons to the last digit."""
    device: str = "cpu"
    """A torch device, such as cpu or cuda."""
    convolutions: Path = "patches"
    """How convolutions are computed on a CPU; see `convolutions.py`."""


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update, (runs, batch)."""

    td_error: NDArray[np.floating]
    """Q-value of each row minus its target."""


def widened(found: Errors, values: torch.Tensor, action: torch.Tensor, share: float) -> Errors:
    """Return errors against targets with a wider gap: a share of the distance to the best action is added (R, B).

    `values` (R, B, A) are the target network's of the observations.
    """
    gap = values.gather(-1, action.unsqueeze(-1)).squeeze(-1) - values.amax(dim=-1)
    return Errors(found.chosen, found.target + share * gap, found.td_error - share * gap, found.next_action)


class Learner:
    """Q-networks of `len(seeds)` runs, with their target copies and optimiser."""

    def __init__(
        self,
        network: Network,
        rule: TargetRule,
        settings: LearnerSettings,
        seeds: Sequence[int],
        *,
        scales: Sequence[float] | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        """Make the networks of some runs.

        Parameters
        ----------
        network, rule, settings
            What all runs share.
        seeds
            One for each run.
        scales
            The factor of each run's rewards for learning. All arguments and results of the learner are in the task's
            units.
        shares
            Each run's weight of given targets; the rest of a target is the one-step target.
        """
        self.network = network
        self.rule = rule
        self.scales = np.ones(len(seeds)) if scales is None else np.array(scales, np.float64)
        self.settings = settings
        self.device = torch.device(settings.device)
        self.dtype: torch.dtype = getattr(torch, settings.dtype)
        self.online = network.initial([named_generator(seed, "network") for seed in seeds], self.dtype).to(self.device)
        self.target = self.online.clone()
        self.optimiser = Optimiser(settings.optimiser, self.online)
        self.errors = (
            ErrorModel(network, rule, settings.optimiser, seeds, self.dtype, self.device)
            if rule.kind == "discor"
            else None
        )
        self.arithmetic = self._make_arithmetic(settings.convolutions)
        self.shares = np.full(len(seeds), rule.share) if shares is None else np.array(shares, np.float64)
        self.updates = 0
        self._sums = torch.zeros(len(seeds), len(STATISTICS), dtype=torch.float64, device=self.device)
        self._summed = 0
        self._make_views()

    def _make_arithmetic(self, path: Path) -> Arithmetic:
        error_network = None if self.errors is None else self.errors.network
        if self.device.type != "cpu":
            return Arithmetic(self.network, error_network)
        if self.network.form == "image":
            return DistinctArithmetic(self.network, error_network, path)
        return CpuArithmetic(self.network, error_network)

    def _make_views(self) -> None:
        layout = self.network.layout
        self.online_views = layout.views(self.online)
        self.target_views = layout.views(self.target)
        gradient = torch.zeros_like(self.online)
        self._trained = Trained(self.online, self.online_views, gradient, layout.views(gradient), self.optimiser)
        self._run_views = [layout.views(self.online[run : run + 1]) for run in range(len(self.online))]
        self._run_target_views = [layout.views(self.target[run : run + 1]) for run in range(len(self.online))]
        self._stage: torch.Tensor | None = None
        self._shares = torch.from_numpy(self.shares).to(self.device, self.dtype)

    @property
    def convolutions(self) -> Path | None:
        """How convolutions are computed, None if there is no choice."""
        return self.arithmetic.path if isinstance(self.arithmetic, DistinctArithmetic) else None

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.online)

    # -- values ---------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def greedy(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """Return the best actions (runs, envs) for observations (runs, envs, ...)."""
        self._settle()
        prepared = self.network.prepare(self._tensor(observations), self.dtype)
        best: NDArray[np.int64] = self.network.forward(self.online_views, prepared).argmax(dim=-1).cpu().numpy()
        return best

    @torch.no_grad()
    def values(self, run: int, observations: NDArray[Any], *, target: bool = False) -> NDArray[np.floating]:
        """Return one run's values (rows, actions) for observations (rows, ...), of its online or target network."""
        self._settle()
        prepared = self.network.prepare(self._tensor(observations[None]), self.dtype)
        views = self._run_target_views[run] if target else self._run_views[run]
        values: NDArray[np.floating] = self.network.forward(views, prepared)[0].cpu().numpy()
        return values / values.dtype.type(self.scales[run])

    def _settle(self) -> None:
        """Wait for the device: a `Executor` may be working on this learner in its own stream."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _tensor(self, observations: NDArray[Any]) -> torch.Tensor:
        return network_tensor(self.network, observations).to(self.device)

    # -- learning -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def update(
        self,
        batches: Sequence[Batch],
        known: NDArray[np.float64] | None = None,
        tried: NDArray[np.float64] | None = None,
    ) -> UpdateResult:
        """Take one gradient step on one batch per run.

        `known` (runs, batch) holds targets computed before the update (EBU's table), and NaN for rows that need the
        one-step target. `tried` (runs, batch, actions) are the graph's values of tried actions, if the rule imitates
        them.
        """
        self._settle()
        action = self._numbers([batch.action for batch in batches], torch.int64)
        scale = torch.from_numpy(self.scales).to(self.device, self.dtype)[:, None]
        reward = self._numbers([batch.reward for batch in batches], self.dtype) * scale
        discount = self._numbers([batch.discount for batch in batches], self.dtype)
        weight = self._numbers([batch.weight for batch in batches], self.dtype)
        halves = 1 if self.needs_no_successors(known) else 2
        given = None if known is None else torch.from_numpy(known).to(self.device, self.dtype) * scale
        numbers = np.stack([batch.discount for batch in batches])
        prepared = self.prepare_batch(self._staged(batches, halves), halves, numbers, known)
        planned = None if tried is None else torch.from_numpy(tried).to(self.device, self.dtype) * scale[..., None]
        successors = (halves - 1) * action.shape[1]
        rows = PreparedRows(prepared, successors, action, reward, discount, weight, given, planned)
        return UpdateResult((self.learn(self.arithmetic, rows, self.count()) / scale).cpu().numpy())

    def prepare_batch(
        self,
        observations: torch.Tensor,
        halves: int,
        discount: NDArray[np.floating],
        known: NDArray[np.floating] | None,
    ) -> torch.Tensor:
        """Return the inputs of the networks in `learn` for the observations (R, B or 2 B, ...) of a batch."""
        if isinstance(self.arithmetic, DistinctArithmetic):
            wanted = wanted_rows(discount, known, self.shares, halves)
            return self.arithmetic.images.prepare(observations, halves, wanted, self.dtype)
        return self.network.prepare(observations, self.dtype)

    def needs_no_successors(self, known: NDArray[Any] | None) -> bool:
        """Return whether the given targets (runs, batch) are complete, so that successors are not needed."""
        return known is not None and bool((self.shares == 1).all()) and not np.isnan(known).any()

    def count(self) -> AllCorrections:
        """Count an update; return the optimisers' corrections for the Q-networks and the error networks."""
        self.updates += 1
        self._summed += 1
        return self.optimiser.count(), (0.0, 0.0) if self.errors is None else self.errors.count()

    @torch.no_grad()
    def learn(self, arithmetic: Arithmetic, rows: PreparedRows, corrections: AllCorrections) -> torch.Tensor:
        """Take the gradient step that `count` counted; return the TD errors (R, B).

        Everything happens on the device and nothing is counted, so that it can be recorded and replayed.
        """
        network, errors = arithmetic.learning_network, self.errors
        next_target = looked = None
        size, images = rows.action.shape[1], rows.action.shape[1] + rows.successors
        if rows.successors:
            with arithmetic.target_branch:
                behind = rows.prepared.shape[1] // images * size
                asked = rows.prepared if self.rule.kind == "advantage" else rows.prepared[:, behind:]
                of_target = network.forward(self.target_views, asked)
                next_target = of_target[:, -rows.successors :].contiguous()
        if errors is not None:
            with arithmetic.error_branch:
                looked = errors.look(arithmetic, rows.prepared)
        values, tape = network.forward_with_tape(self.online_views, rows.prepared)
        arithmetic.target_branch.join()
        found = arithmetic.errors(values, next_target, rows, self._shares)
        if self.rule.kind == "advantage":
            found = widened(found, of_target[:, :size], rows.action, self.rule.advantage)

        weight = rows.weight
        if errors is not None and looked is not None:
            arithmetic.error_branch.join()
            weight, of_errors = arithmetic.weigh(looked, rows, found)
            with arithmetic.error_branch:
                errors.learn(arithmetic, looked, of_errors, corrections[1])
        gradient = arithmetic.gradient(found, weight, rows.action.unsqueeze(-1), values.shape[-1], self._sums)
        if rows.tried is not None:
            imitation = imitation_gradient(values[:, :size], rows.tried, self.rule.imitation_temperature)
            gradient.add_(imitation, alpha=self.rule.imitation)
        arithmetic.descend(network, self._trained, tape.first(size, images), gradient, corrections[0])
        arithmetic.error_branch.join()
        return found.td_error

    def copy_target(self) -> None:
        """Make the target network equal to the online one, in the order of the current stream."""
        self.target.copy_(self.online)
        if self.errors is not None:
            self.errors.copy_target()

    def _numbers(self, arrays: Sequence[NDArray[Any]], dtype: torch.dtype) -> torch.Tensor:
        stacked = arrays[0][None] if len(arrays) == 1 else np.stack(arrays)
        return torch.from_numpy(np.require(stacked, requirements=["C", "W"])).to(self.device, dtype)

    def _staged(self, batches: Sequence[Batch], halves: int) -> torch.Tensor:
        """Return the observations of all runs, followed by their successors if there are two halves."""
        size = len(batches[0])
        first = in_network_order(self.network, batches[0].observation)
        shape = (len(batches), halves * size, *first.shape[1:])
        if self._stage is None or tuple(self._stage.shape) != shape:
            self._stage = torch.from_numpy(np.empty(shape, first.dtype))
        staged = self._stage.numpy()
        for run, batch in enumerate(batches):
            staged[run, :size] = in_network_order(self.network, batch.observation)
            if halves == 2:
                staged[run, size:] = in_network_order(self.network, batch.next_observation)
        return self._stage.to(self.device)

    def take_statistics(self, *, keep: bool = False) -> list[dict[str, float | None]]:
        """Return for each run the means of `STATISTICS` since the last call, None if there was no update.

        With `keep` the next call's means begin where this one's did.
        """
        self._settle()
        count, rows = self._summed, self._sums.tolist()
        if not keep:
            self._sums.zero_()
            self._summed = 0
            self._settle()
        if not count:
            return [dict.fromkeys(STATISTICS) for _ in rows]
        units = [[scale if name in IN_UNITS else 1.0 for name in STATISTICS] for scale in self.scales.tolist()]
        return [
            {name: value / count / unit for name, value, unit in zip(STATISTICS, row, of_run, strict=True)}
            for row, of_run in zip(rows, units, strict=True)
        ]

    # -- runs and saving ------------------------------------------------------------------------------------------

    def of_runs(self, first: int, last: int) -> Learner:
        """Return a learner of the runs first..last-1 that shares this one's tensors, but not its counts.

        After updating views, synchronise the counts with `copy_counts`.
        """
        runs = slice(first, last)
        view = copy.copy(self)
        view.online, view.target, view._sums = self.online[runs], self.target[runs], self._sums[runs]
        view.scales, view.shares = self.scales[runs], self.shares[runs]
        view.optimiser = self.optimiser.of_runs(runs)
        view.errors = None if self.errors is None else self.errors.of_runs(runs)
        view._make_views()
        return view

    def copy_counts(self, other: Learner) -> None:
        """Take the counts of another learner."""
        self.updates, self._summed = other.updates, other._summed
        self.optimiser.steps = other.optimiser.steps
        if self.errors is not None and other.errors is not None:
            self.errors.summed, self.errors.optimiser.steps = other.errors.summed, other.errors.optimiser.steps

    def keep(self, runs: Sequence[int]) -> None:
        """Keep some runs only; the others have finished."""
        self._settle()
        index = torch.tensor(list(runs), device=self.device)
        self.online, self.target = self.online[index].clone(), self.target[index].clone()
        self.optimiser.keep(index)
        if self.errors is not None:
            self.errors.keep(index)
        self._sums = self._sums[index].clone()
        self.scales, self.shares = self.scales[list(runs)], self.shares[list(runs)]
        self._make_views()
        self._settle()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors that a save must hold."""
        tensors = {
            "online": self.online,
            "target": self.target,
            "optimiser_mean": self.optimiser.mean,
            "optimiser_square": self.optimiser.square,
            "sums": self._sums,
        }
        if self.errors is not None:
            tensors.update({f"errors_{name}": tensor for name, tensor in self.errors.tensors().items()})
        return tensors

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return everything that the next update depends on, as arrays and plain JSON values."""
        self._settle()
        arrays = {name: tensor.cpu().numpy() for name, tensor in self.tensors().items()}
        values: dict[str, Any] = {"updates": self.updates, "optimiser_steps": self.optimiser.steps}
        values |= {"summed": self._summed, "convolutions": self.convolutions}
        if self.errors is not None:
            values["errors_steps"] = self.errors.optimiser.steps
            values["errors_summed"] = self.errors.summed
        return arrays, values

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Restore what `state` returned; shapes must be those of this learner."""
        self._settle()
        counts = ("updates", "optimiser_steps", "summed")
        for name in (*counts, "errors_steps", "errors_summed") if self.errors is not None else counts:
            if not is_int(values[name]) or values[name] < 0:
                raise ValueError(f"the saved learner does not fit: {name} is {values[name]!r}, expected a count")
        for name, tensor in self.tensors().items():
            if name not in arrays or tuple(arrays[name].shape) != tuple(tensor.shape):
                found = arrays[name].shape if name in arrays else "nothing"
                raise ValueError(f"the saved learner does not fit: {name} is {found}, expected {tuple(tensor.shape)}")
            if arrays[name].dtype.kind != "f":
                raise ValueError(f"the saved learner does not fit: {name} is {arrays[name].dtype}, expected floats")
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(arrays[name])))
            if name in ("online", "target") and not tensor.isfinite().all():
                raise ValueError(f"the saved learner does not fit: {name} holds NaN or infinity")
        self._settle()
        if self.convolutions is not None:
            # Another way of computing them rounds differently. Before there were several, it was patches.
            self.arithmetic = self._make_arithmetic(values.get("convolutions") or "patches")
        self.updates, self.optimiser.steps = values["updates"], values["optimiser_steps"]
        self._summed = values["summed"]
        if self.errors is not None:
            self.errors.optimiser.steps = values["errors_steps"]
            self.errors.summed = values["errors_summed"]
