"""Importance weights, priorities, statistics and saves for Stable-Baselines3, without changing its `train` methods.

Multiplying the gradient of each row of a network's output by the row's weight is the same as weighting the loss:

    q = q_net(observations)                 forward hook: TD errors are computed and reported
    loss = smooth_l1_loss(q[...], target)
    loss.backward()                         gradient hook on q: rows are multiplied by their weights
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakKeyDictionary

import torch
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch.utils.hooks import RemovableHandle

from backsweep.checks import is_int
from backsweep.integrations.stable_baselines3.buffers import ReplayBuffer
from backsweep.integrations.stable_baselines3.topological_dqn import TopologicalDQN

NETWORKS = (("q_net", "q_net_target"), ("quantile_net", "quantile_net_target"))

_hooks: WeakKeyDictionary[OffPolicyAlgorithm, list[RemovableHandle]] = WeakKeyDictionary()
"""The hooks on each model's networks: an interrupted `learn` leaves them, and the next one replaces them."""


class ReplayCallback(BaseCallback):
    """A callback for ``learn`` of DQN, QR-DQN, SAC, TD3 or DDPG with this package's replay buffer.

    Parameters
    ----------
    weights
        Apply importance weights to the loss of the (action-)value network and report TD errors to the sampler. The
        logged loss is the one without weights. `TopologicalDQN` does both itself, with or without this.
    stats_every
        Log the replay's statistics, as ``replay/...``, every `stats_every` calls of `step`. 0: never.
    save_folder, save_every
        Save the replay to a folder every `save_every` calls of `step`, and at the end. Only changes are written.
        ``Replay.load(save_folder)`` reads it.

    Examples
    --------
    >>> model.learn(100_000, callback=ReplayCallback(save_folder="replay"))  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        weights: bool = True,
        stats_every: int = 1_000,
        save_folder: str | os.PathLike[str] | None = None,
        save_every: int = 100_000,
        verbose: int = 0,
    ) -> None:
        for name, value, least in (("stats_every", stats_every, 0), ("save_every", save_every, 1)):
            if not is_int(value) or value < least:
                raise ValueError(f"{name} must be an int of {least} or more, got {value!r}")
        super().__init__(verbose)
        self._weights = weights
        self._stats_every = stats_every
        self._save_folder = save_folder
        self._save_every = save_every

    @property
    def buffer(self) -> ReplayBuffer:
        """The algorithm's replay buffer."""
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, ReplayBuffer):
            raise TypeError(
                "ReplayCallback needs replay_buffer_class=backsweep.integrations.stable_baselines3.ReplayBuffer, "
                f"got {type(buffer).__module__}.{type(buffer).__name__}"
            )
        return buffer

    def _on_training_start(self) -> None:
        buffer = self.buffer
        gamma = getattr(self.model, "gamma", None)
        if buffer.n_steps > 1 and buffer.replay.gamma != gamma:
            raise ValueError(
                f"replay_buffer_kwargs: gamma must be the algorithm's, {gamma}, with n_steps={buffer.n_steps}, "
                f"got {buffer.replay.gamma}"
            )
        assert isinstance(self.model, OffPolicyAlgorithm)
        remove_weights(self.model)
        if self._weights and not isinstance(self.model, TopologicalDQN):  # which does it itself
            install_weights(self.model, self)

    def _on_step(self) -> bool:
        if self._stats_every and self.n_calls % self._stats_every == 0:
            for name, number in self.buffer.replay.stats().items():
                self.logger.record(f"replay/{name}", number)
        if self._save_folder is not None and self.n_calls % self._save_every == 0:
            self.buffer.replay.save(self._save_folder)
        return True

    def _on_training_end(self) -> None:
        assert isinstance(self.model, OffPolicyAlgorithm)
        remove_weights(self.model)
        if self._save_folder is not None:
            self.buffer.replay.save(self._save_folder)


def install_weights(model: OffPolicyAlgorithm, callback: ReplayCallback) -> None:
    """Apply the weights of the model's buffer to its value network, and report TD errors to it."""
    for online, target in NETWORKS:
        if hasattr(model, online):
            hooks = ValueHooks(callback)
            _hooks[model] = [
                getattr(model, target).register_forward_hook(hooks.after_target),
                getattr(model, online).register_forward_hook(hooks.after_online),
            ]
            return
    if not isinstance(model, (SAC, TD3)):
        raise TypeError(
            "weights: ReplayCallback applies them to DQN, QR-DQN, SAC, TD3 and DDPG, "
            f"got {type(model).__name__}; use weights=False"
        )
    # Half the mean squared error has the TD error as its gradient; TD3's whole one has twice that.
    critic = CriticHooks(callback, 0.5 if isinstance(model, TD3) else 1.0)
    _hooks[model] = [model.critic.register_forward_hook(critic.after_critic)]


def remove_weights(model: OffPolicyAlgorithm) -> None:
    """Remove the hooks from the model's networks."""
    for handle in _hooks.pop(model, []):
        handle.remove()


def buffer_of(callback: ReplayCallback) -> ReplayBuffer | None:
    """Return the buffer that the model learns from now; None, and no hooks any more, if it learns without `callback`.

    The callback sees every step. If it missed some, its `learn` was interrupted and another one runs.
    """
    assert isinstance(callback.model, OffPolicyAlgorithm)
    if callback.num_timesteps == callback.model.num_timesteps:
        return callback.buffer
    remove_weights(callback.model)
    return None


class ValueHooks:
    """For networks with a value (or quantiles of one) for each action: DQN, QR-DQN."""

    def __init__(self, callback: ReplayCallback) -> None:
        self._callback = callback
        self._next: torch.Tensor | None = None

    def after_target(self, module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
        """Keep the target network's values of the successors."""
        self._next = _mean_over_quantiles(output.detach())

    def after_online(self, module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
        """Report TD errors, and weight rows in the backward pass."""
        if not output.requires_grad or self._next is None:
            return  # acting, not learning
        following, self._next = self._next, None
        buffer, model = buffer_of(self._callback), self._callback.model
        if buffer is None or (batch := buffer.last_batch) is None or (samples := buffer.last_samples) is None:
            return
        assert isinstance(model, OffPolicyAlgorithm)
        discounts = model.gamma if samples.discounts is None else samples.discounts
        best = following.max(dim=1, keepdim=True).values
        target = samples.rewards + (1 - samples.dones) * discounts * best
        value = _mean_over_quantiles(output.detach()).gather(1, samples.actions.long())
        buffer.update_priorities(target - value)
        weights = _weights(batch.weight, output)
        output.register_hook(lambda gradient: gradient * weights)


class CriticHooks:
    """For critics of continuous actions: `train` keeps their targets, so TD errors are read from gradients."""

    def __init__(self, callback: ReplayCallback, scale: float) -> None:
        self._callback = callback
        self._scale = scale

    def after_critic(self, module: torch.nn.Module, inputs: Any, output: tuple[torch.Tensor, ...]) -> None:
        """Weight rows and report TD errors in the backward pass."""
        # The actor's loss goes through the critic too, with actions that have a gradient.
        if not output[0].requires_grad or inputs[1].requires_grad:
            return
        buffer = buffer_of(self._callback)
        if buffer is None or (batch := buffer.last_batch) is None:
            return
        errors: list[torch.Tensor] = []

        def weigh(gradient: torch.Tensor) -> torch.Tensor:
            errors.append(gradient.detach().abs() * (len(gradient) * self._scale))
            if len(errors) == len(output):
                buffer.update_priorities(torch.stack(errors).mean(dim=0))
            return gradient * _weights(batch.weight, gradient)

        for values in output:
            values.register_hook(weigh)


def _mean_over_quantiles(values: torch.Tensor) -> torch.Tensor:
    """Return values (batch, actions) from those or from quantiles (batch, quantiles, actions)."""
    return values if values.dim() == 2 else values.mean(dim=1)


def _weights(weight: Any, like: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor(weight, dtype=like.dtype, device=like.device)
    return weights.reshape(-1, *[1] * (like.dim() - 1))
