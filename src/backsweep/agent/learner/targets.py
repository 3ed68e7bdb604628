"""Targets of Q-values: pure functions, with worked examples in the tests.

Axes: L lanes, B rows of a batch, A actions, T steps of an episode in time order. `discount` is gamma, and 0 where a
termination stops bootstrapping.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.replay import Replay
from backsweep.types import Batch


def discounts(batch: Batch, replay: Replay, bootstrap_at_timeout: bool) -> NDArray[np.float32]:
    """Return the discounts of rows of a replay (B,); unless `bootstrap_at_timeout`, a time limit is an end too."""
    return batch.discount if bootstrap_at_timeout else batch.discount * ~replay.truncated(batch.row, batch.steps)


def double_dqn_targets(
    reward: torch.Tensor, discount: torch.Tensor, next_online: torch.Tensor, next_target: torch.Tensor
) -> torch.Tensor:
    """Return reward + discount * Qt(s', argmax Q(s', .)).

    reward, discount: (L, B); next_online, next_target: (L, B, A); result: (L, B).
    """
    chosen = next_online.argmax(dim=-1, keepdim=True)
    return reward + discount * next_target.gather(-1, chosen).squeeze(-1)


def backward_targets(
    action: NDArray[np.int64],
    reward: NDArray[np.floating],
    discount: NDArray[np.floating],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating] | None,
    diffusion: float,
) -> NDArray[np.float64]:
    """Return the targets of an episode by EBU's temporary table.

    The table begins as the target network's values of every step's next state. The walk goes from the last step to the
    first: y = reward + discount * table[step, best action]; then the entry of the step before, whose next state is this
    step's state, moves at the action taken here to diffusion * y + (1 - diffusion) * what it was. With 0 the targets
    are the plain one-step ones; with 1 they are the returns of the episode, as far as it is good.

    Parameters
    ----------
    action, reward, discount
        (T,), in time order.
    next_target, next_online
        (T, A): values of the next states. With `next_online` the best action is the online network's (double
        selection); None takes the table's own maximum.
    diffusion
        EBU's beta, in 0..1.
    """
    if not 0.0 <= diffusion <= 1.0:
        raise ValueError(f"diffusion must be in 0..1, got {diffusion}")
    # Plain lists: an episode is walked step by step, and numpy's single entries are slow.
    table: list[list[float]] = np.asarray(next_target, np.float64).tolist()
    chosen = None if next_online is None else np.asarray(next_online).argmax(axis=1).tolist()
    actions, rewards, discounts = (np.asarray(column).tolist() for column in (action, reward, discount))
    targets = np.empty(len(table))
    for step in range(len(table) - 1, -1, -1):
        best = max(table[step]) if chosen is None else table[step][chosen[step]]
        target = rewards[step] + discounts[step] * best
        targets[step] = target
        if step:
            before = table[step - 1]
            before[actions[step]] = diffusion * target + (1.0 - diffusion) * before[actions[step]]
    return targets


def discor_weights(discount: torch.Tensor, next_error: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
    """Return DisCor's weights: softmax over the batch of -discount * Delta(s', a') / temperature, times the batch size.

    discount, next_error: (L, B); temperature: (L,); result: (L, B), each lane's weights with a mean of 1.
    """
    return torch.softmax(-discount * next_error / temperature[:, None], dim=1) * discount.shape[1]


def discor_error_targets(td_error: torch.Tensor, discount: torch.Tensor, next_error: torch.Tensor) -> torch.Tensor:
    """Return |Q(s, a) - y| + discount * Delta(s', a'), what the error network is pulled towards; all (L, B)."""
    return td_error.abs() + discount * next_error


def effective_sample_size(weight: torch.Tensor) -> torch.Tensor:
    """Return (sum w)^2 / sum w^2 of each lane, (L,): B for equal weights, 1 when one row has it all."""
    return weight.sum(dim=1).square() / weight.square().sum(dim=1)


def huber_gradient(td_error: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the gradient of mean(weight * huber(td_error)) over the batch, (L, B)."""
    return td_error.clamp(-1.0, 1.0) * weight / td_error.shape[1]


def huber_loss(td_error: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return mean(weight * huber(td_error)) of each lane, (L,); the Huber loss turns linear at 1."""
    size = td_error.abs()
    inner = size.clamp(max=1.0)
    return (weight * (inner * (size - 0.5 * inner))).mean(dim=1)
