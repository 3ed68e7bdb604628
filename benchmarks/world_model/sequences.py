"""Stored steps of several environments on the device, and batches of sequences of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Batch = dict[str, torch.Tensor]


class Sequences:
    """Rows in the order that DreamerV2 takes: an observation, and the action and reward that led to it.

    An episode begins with a row of its own without action and reward. Sequences may cross the ends of episodes; the
    model forgets its state where `is_first` is 1.
    """

    def __init__(self, rows: int, num_envs: int, image: tuple[int, ...], actions: int, device: torch.device) -> None:
        """Make room for `rows` rows of each environment."""
        shape = rows, num_envs
        self.device = device
        self.images = torch.zeros((*shape, *image), dtype=torch.uint8, device=device)
        self.actions = torch.zeros((*shape, actions), device=device)
        self.numbers = torch.zeros((*shape, 3), device=device)
        self.count = np.zeros(num_envs, np.int64)

    def add(
        self,
        envs: Sequence[int] | NDArray[np.int64],
        images: NDArray[np.uint8],
        actions: NDArray[np.int64] | None = None,
        rewards: NDArray[np.float64] | None = None,
        terminated: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add a row to some environments; without actions, the first of an episode."""
        chosen = np.asarray(envs, np.int64)
        if (self.count[chosen] >= len(self.images)).any():
            raise ValueError(f"there is room for {len(self.images)} rows of an environment, and no more")
        numbers = np.zeros((len(chosen), 3), np.float32)
        if actions is None:
            numbers[:, 2] = 1.0
        else:
            assert rewards is not None
            assert terminated is not None
            numbers[:, 0], numbers[:, 1] = rewards, terminated
        place = self._sent(self.count[chosen]), self._sent(chosen)
        self.images[place] = self._sent(images)
        self.numbers[place] = self._sent(numbers)
        if actions is not None:
            self.actions[(*place, self._sent(actions.astype(np.int64)))] = 1.0
        self.count[chosen] += 1

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Return sequences (length, batch, ...) from random environments and places."""
        envs = generator.integers(len(self.count), size=batch)
        starts = (generator.random(batch) * (self.count[envs] - length + 1)).astype(np.int64)
        place = self._sent(starts[None, :] + np.arange(length)[:, None]), self._sent(envs)
        numbers = self.numbers[place]
        return {
            "rgb": self.images[place],
            "actions": self.actions[place],
            "rewards": numbers[..., 0:1],
            "terminated": numbers[..., 1:2],
            "is_first": numbers[..., 2:3],
        }

    def _sent(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)


def enlarged(images: torch.Tensor, size: int) -> torch.Tensor:
    """Return images (..., height, width, 3) as floats (..., 3, size, size), each pixel the nearest one of theirs."""
    height, width = images.shape[-3:-1]
    rows = torch.arange(size, device=images.device) * height // size
    columns = torch.arange(size, device=images.device) * width // size
    taken = images.index_select(-3, rows).index_select(-2, columns)
    return taken.movedim(-1, -3).float()
