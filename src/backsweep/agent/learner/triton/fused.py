"""The parts of an update other than its networks, as Triton kernels."""

from __future__ import annotations

import torch

from backsweep.agent.learner.arithmetic import Arithmetic, Errors, Evaluates, Looked, PreparedRows, Trained
from backsweep.agent.learner.branches import Branch
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.networks import Parameters, Tape
from backsweep.agent.learner.optimisers import Corrections
from backsweep.agent.learner.packed_arrays import PackedArrays
from backsweep.agent.learner.triton import triton_batches, triton_optimisers
from backsweep.agent.learner.triton.adam import AdamStep, adam_constants, steps_with_gradients
from backsweep.agent.learner.triton.layers import batch_shape, ceil_divide
from backsweep.agent.learner.triton.network import FusedNetwork

OPTIMISER_BLOCK = 1024
MOVE_BLOCK = 256


class FusedArithmetic(Arithmetic):
    """The arithmetic of one learner. `PreparedRows.prepared` holds row numbers (R, B + successors)."""

    def __init__(self, learner: Learner, observations: DeviceObservations) -> None:
        self.network: FusedNetwork = FusedNetwork(learner.network, observations)
        self.error_network: FusedNetwork = self.network
        if learner.errors is not None:
            self.error_network = FusedNetwork(learner.errors.network, observations)
        self._adam = adam_constants(learner.settings.optimiser)
        self._steps_with_gradients = steps_with_gradients(learner.settings.optimiser)
        self.target_branch, self.error_branch = Branch(observations.device), Branch(observations.device)

    def move(self, source: torch.Tensor, out: torch.Tensor) -> None:
        """Copy with a kernel, which starts ten microseconds sooner than a copy in a recorded program."""
        numbers = source.numel()
        triton_batches.move[(ceil_divide(numbers, MOVE_BLOCK),)](source, out, numbers, BLOCK=MOVE_BLOCK)

    def act(self, parameters: Parameters, prepared: torch.Tensor, best: PackedArrays) -> None:
        """Write the best actions for one row of each run into the host's memory."""
        self.network.best(parameters, prepared, best.pinned["best"])

    def weigh(self, looked: Looked, rows: PreparedRows, found: Errors) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weights (R, B) and the error networks' gradient (R, B, A), before the softplus."""
        (runs, size), actions = rows.action.shape, looked.values.shape[-1]
        weight, gradient = torch.empty_like(rows.weight), torch.empty_like(looked.values)
        assert found.next_action is not None
        triton_batches.discor_weights[(runs,)](
            looked.values,
            looked.following,
            rows.action,
            found.next_action if looked.chosen_next else None,
            found.td_error,
            rows.discount,
            rows.weight,
            looked.temperature,
            looked.prediction_sum,
            weight,
            gradient,
            BATCH=batch_shape(size, actions),
        )
        return weight, gradient

    def errors(
        self, values: torch.Tensor, next_target: torch.Tensor | None, rows: PreparedRows, shares: torch.Tensor
    ) -> Errors:
        """Return the TD errors of values (R, B + S, A), the observations' followed by the successors'."""
        assert next_target is not None
        (runs, size), actions = rows.action.shape, values.shape[-1]
        found, next_action = rows.reward.new_empty(3, runs, size), torch.empty_like(rows.action)
        triton_batches.td_errors[(runs,)](
            values,
            next_target,
            rows.action,
            rows.reward,
            rows.discount,
            rows.known,
            rows.place,
            shares,
            found,
            next_action,
            BATCH=batch_shape(size, actions, rows.successors),
        )
        return Errors(found[0], found[1], found[2], next_action.unsqueeze(-1))

    def gradient(
        self, found: Errors, weight: torch.Tensor, action: torch.Tensor, actions: int, sums: torch.Tensor
    ) -> torch.Tensor:
        """Return the gradient (R, B, A) of the weighted Huber loss, and add this update's statistics to `sums`."""
        runs, size = weight.shape
        gradient = weight.new_empty(runs, size, actions)
        triton_batches.huber_and_statistics[(runs,)](
            found.td_error,
            weight,
            found.chosen,
            found.target,
            action,
            gradient,
            sums,
            BATCH=batch_shape(size, actions),
        )
        return gradient

    def descend(
        self, network: Evaluates, trained: Trained, tape: Tape, gradient: torch.Tensor, corrections: Corrections
    ) -> None:
        """Take the optimiser's step, given the gradient (R, B, A) of the values."""
        assert isinstance(network, FusedNetwork)
        assert isinstance(corrections, torch.Tensor)
        step, numbers = None, trained.parameters.shape[1]
        if self._steps_with_gradients:
            optimiser, views = trained.optimiser, network.layout.views
            mean, square = views(optimiser.mean), views(optimiser.square)
            step, numbers = AdamStep(self._adam, mean, square, corrections), network.before_linear
        network.backward(trained.views, tape, gradient, trained.gradient_views, step)
        self._step(trained, corrections, numbers)

    def _step(self, trained: Trained, corrections: torch.Tensor, numbers: int) -> None:
        """Let the optimiser change the first numbers of each run along the gradient, in one pass."""
        parameters, gradient, optimiser = trained.parameters, trained.gradient, trained.optimiser
        settings, (runs, size) = optimiser.settings, parameters.shape
        if settings.kind == "sgd":
            optimiser.apply(parameters, gradient, corrections)
            return
        optimiser.clip(gradient)
        if settings.kind == "rmsprop":
            triton_optimisers.rmsprop[(ceil_divide(runs * size, OPTIMISER_BLOCK),)](
                parameters,
                gradient,
                optimiser.square,
                runs * size,
                settings.rmsprop_alpha,
                1.0 - settings.rmsprop_alpha,
                settings.rmsprop_eps,
                settings.learning_rate,
                BLOCK=OPTIMISER_BLOCK,
            )
            return
        triton_optimisers.adam[(ceil_divide(numbers, OPTIMISER_BLOCK), runs)](
            parameters,
            gradient,
            optimiser.mean,
            optimiser.square,
            corrections,
            numbers,
            size,
            ADAM=self._adam,
            BLOCK=OPTIMISER_BLOCK,
        )
