"""Double DQN for many lanes at once: act, update, copy the target.

The state of a learner is a handful of flat tensors with one row per lane; everything done to them is a pure function of
`networks`, `targets` and `optimisers`, and treats each row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.learner.discor import ErrorModel
from backsweep.learner.networks import Network, in_network_order
from backsweep.learner.optimisers import Optimiser, OptimiserSettings
from backsweep.learner.rules import TargetRule
from backsweep.learner.targets import double_dqn_targets, effective_sample_size, huber_gradient, huber_loss
from backsweep.seeding import named_generator
from backsweep.types import Batch

STATISTICS = ("loss", "absolute_td_error", "batch_q", "batch_target", "effective_sample_size")
"""What is averaged over updates between two training records. `batch_q` is the mean Q of the method's own batches."""


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """What a learner needs to know beyond its network and rule."""

    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    dtype: str = "float32"
    """float32, or float64 for comparisons to the last digit."""
    device: str = "cpu"


@dataclass(frozen=True)
class UpdateResult:
    """What an update found out about its rows, (lanes, batch)."""

    td_error: NDArray[np.floating]


class Learner:
    """Q-networks of `len(seeds)` lanes, with their target copies and optimiser."""

    def __init__(self, network: Network, rule: TargetRule, settings: LearnerSettings, seeds: Sequence[int]) -> None:
        self.network = network
        self.rule = rule
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
        self.updates = 0
        self._sums = torch.zeros(len(seeds), len(STATISTICS), dtype=torch.float64)
        self._summed = 0
        self._make_views()

    def _make_views(self) -> None:
        layout = self.network.layout
        self._gradient = torch.zeros_like(self.online)
        self._online_views = layout.views(self.online)
        self._target_views = layout.views(self.target)
        self._gradient_views = layout.views(self._gradient)
        self._lane_views = [layout.views(self.online[lane : lane + 1]) for lane in range(len(self.online))]
        self._lane_target_views = [layout.views(self.target[lane : lane + 1]) for lane in range(len(self.online))]
        self._stage: torch.Tensor | None = None

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self.online)

    # -- values ---------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def greedy(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """Return the best actions (lanes, envs) for observations (lanes, envs, ...)."""
        prepared = self.network.prepare(self._tensor(observations), self.dtype)
        best: NDArray[np.int64] = self.network.forward(self._online_views, prepared).argmax(dim=-1).cpu().numpy()
        return best

    @torch.no_grad()
    def values(self, lane: int, observations: NDArray[Any], *, target: bool = False) -> NDArray[np.floating]:
        """Return one lane's values (rows, actions) for observations (rows, ...), of its online or target network."""
        prepared = self.network.prepare(self._tensor(observations[None]), self.dtype)
        views = self._lane_target_views[lane] if target else self._lane_views[lane]
        values: NDArray[np.floating] = self.network.forward(views, prepared)[0].cpu().numpy()
        return values

    def _tensor(self, observations: NDArray[Any]) -> torch.Tensor:
        ordered = np.ascontiguousarray(in_network_order(self.network, observations))
        return torch.from_numpy(ordered).to(self.device)

    # -- learning -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def update(self, batches: Sequence[Batch], known: NDArray[np.float64] | None = None) -> UpdateResult:
        """Take one gradient step on one batch per lane.

        `known` (lanes, batch) holds targets that were worked out beforehand (EBU's table), and NaN where the one-step
        target is wanted.
        """
        network, size = self.network, len(batches[0])
        action = self._numbers([batch.action for batch in batches], torch.int64).unsqueeze(-1)
        reward = self._numbers([batch.reward for batch in batches], self.dtype)
        discount = self._numbers([batch.discount for batch in batches], self.dtype)
        weight = self._numbers([batch.weight for batch in batches], self.dtype)
        all_known = known is not None and not np.isnan(known).any()

        halves = 1 if all_known else 2
        prepared = network.prepare(self._staged(batches, halves), self.dtype)
        values, tape = network.forward_with_tape(self._online_views, prepared)
        chosen = values[:, :size].gather(-1, action).squeeze(-1)
        if all_known:
            assert known is not None
            target = torch.from_numpy(known).to(self.device, self.dtype)
        else:
            following = prepared[:, prepared.shape[1] // 2 :]
            next_online = values[:, size:]
            next_target = network.forward(self._target_views, following)
            target = double_dqn_targets(reward, discount, next_online, next_target)
            if known is not None:
                given = torch.from_numpy(known).to(self.device, self.dtype)
                target = torch.where(given.isnan(), target, given)
        td_error = chosen - target

        if self.errors is not None:
            next_action = next_online.argmax(dim=-1, keepdim=True)
            weight = weight * self.errors.update(prepared, size, action, next_action, td_error, discount)
        gradient = torch.zeros_like(values[:, :size]).scatter_(
            -1, action, huber_gradient(td_error, weight).unsqueeze(-1)
        )
        network.backward(self._online_views, tape.first(1, halves), gradient, self._gradient_views)
        self.optimiser.step(self.online, self._gradient)
        self.updates += 1
        self._note(td_error, weight, chosen, target)
        return UpdateResult(td_error.cpu().numpy())

    def copy_target(self) -> None:
        """Make the target network equal to the online one."""
        self.target.copy_(self.online)
        if self.errors is not None:
            self.errors.copy_target()

    def _numbers(self, arrays: Sequence[NDArray[Any]], dtype: torch.dtype) -> torch.Tensor:
        stacked = arrays[0][None] if len(arrays) == 1 else np.stack(arrays)
        return torch.tensor(stacked, dtype=dtype, device=self.device)

    def _staged(self, batches: Sequence[Batch], halves: int) -> torch.Tensor:
        """Return the observations of all lanes, and behind them their successors if there are two halves."""
        size = len(batches[0])
        first = in_network_order(self.network, batches[0].observation)
        shape = (len(batches), halves * size, *first.shape[1:])
        if self._stage is None or tuple(self._stage.shape) != shape:
            self._stage = torch.from_numpy(np.empty(shape, first.dtype))
        staged = self._stage.numpy()
        for lane, batch in enumerate(batches):
            staged[lane, :size] = in_network_order(self.network, batch.observation)
            if halves == 2:
                staged[lane, size:] = in_network_order(self.network, batch.next_observation)
        return self._stage.to(self.device)

    def _note(self, td_error: torch.Tensor, weight: torch.Tensor, chosen: torch.Tensor, target: torch.Tensor) -> None:
        numbers = (
            huber_loss(td_error, weight),
            td_error.abs().mean(dim=1),
            chosen.mean(dim=1),
            target.mean(dim=1),
            effective_sample_size(weight),
        )
        self._sums += torch.stack(numbers, dim=1).cpu()
        self._summed += 1

    def take_statistics(self) -> list[dict[str, float | None]]:
        """Return for each lane the means of `STATISTICS` since the last call, None if there was no update."""
        count, rows = self._summed, self._sums.tolist()
        self._sums.zero_()
        self._summed = 0
        if not count:
            return [dict.fromkeys(STATISTICS) for _ in rows]
        return [{name: value / count for name, value in zip(STATISTICS, row, strict=True)} for row in rows]

    # -- lanes and saving -----------------------------------------------------------------------------------------

    def keep(self, lanes: Sequence[int]) -> None:
        """Go on with some lanes only; the others have finished."""
        index = torch.tensor(list(lanes), device=self.device)
        self.online, self.target = self.online[index].clone(), self.target[index].clone()
        self.optimiser.keep(index)
        if self.errors is not None:
            self.errors.keep(index)
        self._sums = self._sums[index.cpu()].clone()
        self._make_views()

    def finite(self) -> NDArray[np.bool_]:
        """Say for each lane whether all its parameters are finite numbers."""
        finite: NDArray[np.bool_] = torch.isfinite(self.online).all(dim=1).cpu().numpy()
        return finite

    def _tensors(self) -> dict[str, torch.Tensor]:
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
        arrays = {name: tensor.cpu().numpy() for name, tensor in self._tensors().items()}
        values = {"updates": self.updates, "optimiser_steps": self.optimiser.steps, "summed": self._summed}
        if self.errors is not None:
            values["errors_steps"] = self.errors.optimiser.steps
            values["errors_summed"] = self.errors.summed
        return arrays, values

    def load_state(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from what `state` returned; shapes must be those of this learner."""
        for name, tensor in self._tensors().items():
            if name not in arrays or tuple(arrays[name].shape) != tuple(tensor.shape):
                found = arrays[name].shape if name in arrays else "nothing"
                raise ValueError(f"the saved learner does not fit: {name} is {found}, expected {tuple(tensor.shape)}")
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(arrays[name])))
        self.updates, self.optimiser.steps = values["updates"], values["optimiser_steps"]
        self._summed = values["summed"]
        if self.errors is not None:
            self.errors.optimiser.steps = values["errors_steps"]
            self.errors.summed = values["errors_summed"]
