"""TorchRL."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries.base import Library, MissingError, Wanted, load
from benchmarks.streams import Stream, Transition


class TorchRL(Library):
    """`TensorDictReplayBuffer` or `TensorDictPrioritizedReplayBuffer` over a `LazyTensorStorage`."""

    def __init__(self, wanted: Wanted) -> None:
        if wanted.method not in ("uniform", "prioritized"):
            raise MissingError("has none")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data = load("torchrl.data", "torchrl")
            self._tensordict = load("tensordict", "tensordict").TensorDict
            self._torch = load("torch", "torch")
        storage = data.LazyTensorStorage(wanted.rows)
        self._lanes = wanted.lanes
        if wanted.method == "prioritized":
            try:
                self._buffer = data.TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=storage)
            except (RuntimeError, ImportError) as error:
                cause = next((str(item.message) for item in said if "extension" in str(item.message).lower()), "")
                torch_version = self._torch.__version__.split("+")[0]
                reason = f"its native extension does not load on torch {torch_version}: {error}"
                raise MissingError((f"{reason} ({cause})" if cause else reason)[:200]) from error
        else:
            self._buffer = data.TensorDictReplayBuffer(storage=storage)

    def add(self, prepared: Transition) -> None:
        """Wrap the arrays in a TensorDict and add it."""
        if self._lanes == 1:
            self._buffer.add(self._wrapped(prepared, []))
        else:
            self._buffer.extend(self._wrapped(prepared, [self._lanes]))

    def _wrapped(self, transition: Transition, batch_size: list[int]) -> Any:
        tensor = self._torch.as_tensor
        return self._tensordict(
            {
                "observation": tensor(transition[0]),
                "action": tensor(transition[1]),
                "next": {
                    "observation": tensor(transition[3]),
                    "reward": tensor(transition[2], dtype=self._torch.float32),
                    "terminated": tensor(transition[4]),
                    "truncated": tensor(transition[5]),
                },
            },
            batch_size=batch_size,
        )

    def sample(self, batch: int) -> Any:
        """Return a TensorDict."""
        return self._buffer.sample(batch)

    def sample_and_update(self, batch: int, errors: NDArray[np.float32]) -> Any:
        """Return a TensorDict whose rows have new priorities."""
        result = self._buffer.sample(batch)
        self._buffer.update_priority(result["index"], self._torch.as_tensor(errors))
        return result

    def fill(self, stream: Stream, steps: int) -> None:
        """Add in large pieces: one at a time would take minutes."""
        if self._lanes > 1:
            super().fill(stream, steps)
            return
        while steps > 0:
            piece = stream.take(min(steps, 512))
            stacked = Transition(*(np.stack([np.asarray(item[i]) for item in piece]) for i in range(6)))
            self._buffer.extend(self._wrapped(stacked, [len(piece)]))
            steps -= 512
