"""DisCor's error network: the estimated error of each row's target."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence

import torch

from backsweep.agent.learner.arithmetic import Arithmetic, Looked, Trained
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import Corrections, Optimiser, OptimiserSettings
from backsweep.agent.learner.rules import TargetRule
from backsweep.jit.random_streams import named_generator

SMALLEST_TEMPERATURE = 1e-6  # a mean prediction of zero would divide by zero


def error_network(network: Network) -> Network:
    """Return the Q-network's shape with one more linear layer and non-negative values."""
    linear = network.linear if network.form == "table" else (*network.linear, *network.linear[-1:])
    return dataclasses.replace(network, linear=linear, non_negative=True)


class ErrorModel:
    """Delta of every run, its target copy, its optimiser and the temperature."""

    def __init__(
        self,
        network: Network,
        rule: TargetRule,
        optimiser: OptimiserSettings,
        seeds: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.network = error_network(network)
        self.rule = rule
        generators = [named_generator(seed, "error network") for seed in seeds]
        self.online = self.network.initial(generators, dtype).to(device)
        self.target = self.online.clone()
        self.optimiser = Optimiser(optimiser, self.online)
        self.temperature = torch.full((len(seeds),), rule.temperature, dtype=dtype, device=device)
        self.prediction_sum = torch.zeros_like(self.temperature)
        self.summed = 0
        self._make_views()

    def _make_views(self) -> None:
        layout = self.network.layout
        self._online_views, self._target_views = layout.views(self.online), layout.views(self.target)
        gradient = torch.zeros_like(self.online)
        self._trained = Trained(self.online, self._online_views, gradient, layout.views(gradient), self.optimiser)

    def count(self) -> tuple[float, float]:
        """Count an update; return its `corrections`."""
        self.summed += 1
        return self.optimiser.count()

    def look(self, arithmetic: Arithmetic, prepared: torch.Tensor) -> Looked:
        """Return the error networks' outputs for a batch: for observations, followed by their successors."""
        half, network = prepared.shape[1] // 2, arithmetic.error_network
        values, tape = network.forward_with_tape(self._online_views, prepared[:, :half])
        views = self._target_views if self.rule.error_target else self._online_views
        following = network.forward(views, prepared[:, half:])
        return Looked(values, tape, following, self.temperature, self.prediction_sum, self.rule.error_target)

    def learn(self, arithmetic: Arithmetic, looked: Looked, gradient: torch.Tensor, corrections: Corrections) -> None:
        """Take one step of mean squared error."""
        arithmetic.descend(arithmetic.error_network, self._trained, looked.tape, gradient, corrections)

    def copy_target(self) -> None:
        """Copy the target; the temperature becomes the mean prediction since the last copy."""
        self.target.copy_(self.online)
        if self.summed:
            self.temperature.copy_((self.prediction_sum / self.summed).clamp_(min=SMALLEST_TEMPERATURE))
            self.prediction_sum.zero_()
            self.summed = 0

    def of_runs(self, runs: slice) -> ErrorModel:
        """Return the error networks of some runs, with the same memory."""
        view = copy.copy(self)
        view.online, view.target = self.online[runs], self.target[runs]
        view.temperature, view.prediction_sum = self.temperature[runs], self.prediction_sum[runs]
        view.optimiser = self.optimiser.of_runs(runs)
        view._make_views()
        return view

    def keep(self, runs: torch.Tensor) -> None:
        """Keep some runs only."""
        self.online, self.target = self.online[runs].clone(), self.target[runs].clone()
        self.temperature, self.prediction_sum = self.temperature[runs].clone(), self.prediction_sum[runs].clone()
        self.optimiser.keep(runs)
        self._make_views()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors that a save must hold."""
        return {
            "online": self.online,
            "target": self.target,
            "mean": self.optimiser.mean,
            "square": self.optimiser.square,
            "temperature": self.temperature,
            "prediction_sum": self.prediction_sum,
        }
