"""Types that the parts of the package exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from backsweep.trees import map_tree

if TYPE_CHECKING:
    import torch

Rows: TypeAlias = NDArray[np.int64]
"""Serial numbers of transitions: the first ever added is 0, the next 1, and so on. A serial number is never used
twice, so an overwritten row is never confused with the row that took its slot."""

Vertex: TypeAlias = int
"""A state in the graph. Valid until the next ``add``."""

Observations: TypeAlias = Any
"""A batch of observations: an array with a leading batch axis, or for ``Dict`` and ``Tuple`` spaces a dict or tuple
of such arrays."""


@dataclass(slots=True, eq=False)
class Picks:
    """The rows that a sampler chose.

    A weight of None means 1.0 for every row, a source of None means 0.
    """

    row: Rows
    """Serial numbers of the rows."""
    weight: NDArray[np.float32] | None = None
    """Importance weights."""
    source: NDArray[np.int64] | None = None
    """Which part of a mixture each row came from."""


@dataclass(slots=True, eq=False)
class Batch:
    """A batch of transitions, one entry of every array per transition.

    Attributes
    ----------
    observation, next_observation
        In the form of the observation space, with a leading batch axis. ``next_observation`` is the true successor,
        at terminations and truncations too; with ``n_step > 1`` it is up to n steps ahead in the same episode.
    action
        In the form of the action space, with a leading batch axis.
    reward
        The reward, or the discounted sum of up to ``n_step`` rewards.
    terminated
        Whether the (last) step terminated the episode. Time limits do not count.
    discount
        The factor of the value of ``next_observation``: ``gamma ** steps``, and 0 after a termination. A
        one-step target is ``reward + discount * value(next_observation)`` for every ``n_step``.
    weight
        Importance weight of the row in the loss.
    row
        Serial numbers, for ``update_priorities``.
    source
        Which part of a ``Mixture`` the row came from; 0 for every other sampler.
    steps
        The number of steps in the row: up to ``n_step``, fewer at the end of an episode.
    target
        With ``values=GraphValues(...)``: the finished target of each row, NaN where the graph has no value yet. None
        without.
    """

    observation: Observations
    action: NDArray[Any]
    reward: NDArray[np.float32]
    next_observation: Observations
    terminated: NDArray[np.bool_]
    discount: NDArray[np.float32]
    weight: NDArray[np.float32]
    row: Rows
    source: NDArray[np.int64]
    steps: NDArray[np.int64]
    target: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.row)

    def to_torch(self, device: str | torch.device = "cpu") -> TorchBatch:
        """Return the batch as torch tensors on `device`; on the CPU the tensors share the arrays' memory."""
        try:
            import torch
        except ImportError as error:
            raise ImportError("Batch.to_torch needs torch: pip install 'backsweep[torch]'") from error
        target = torch.device(device)

        def convert(value: Any) -> Any:
            if value is None:
                return None
            # weight and source may be shared read-only constants, which torch would warn about.
            tensor = torch.from_numpy(value if value.flags.writeable else value.copy())
            return tensor.to(target, non_blocking=True)

        return TorchBatch(**{name: map_tree(convert, getattr(self, name)) for name in Batch.__dataclass_fields__})

    def to_jax(self, device: Any = None) -> JaxBatch:
        """Return the batch as jax arrays, copied to `device`; `row` stays a numpy array, whose numbers need 64 bits."""
        try:
            import jax
        except ImportError as error:
            raise ImportError("Batch.to_jax needs jax: pip install jax") from error

        def convert(name: str) -> Any:
            value = getattr(self, name)
            if name == "row":
                return value.copy()
            # A copy, because jax would otherwise share the arrays, which later batches reuse.
            return jax.device_put(jax.tree.map(np.array, value), device)

        return JaxBatch(*(convert(name) for name in JaxBatch._fields))


class JaxBatch(NamedTuple):
    """The same fields as `Batch`, as jax arrays: a pytree, which functions under `jax.jit` accept."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: Any
    discount: Any
    weight: Any
    row: Rows
    source: Any
    steps: Any
    target: Any


@dataclass(slots=True, eq=False)
class TorchBatch:
    """The same fields as `Batch`, as torch tensors."""

    observation: Any
    action: torch.Tensor
    reward: torch.Tensor
    next_observation: Any
    terminated: torch.Tensor
    discount: torch.Tensor
    weight: torch.Tensor
    row: torch.Tensor
    source: torch.Tensor
    steps: torch.Tensor
    target: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.row)
