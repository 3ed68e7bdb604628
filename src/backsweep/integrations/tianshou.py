"""backsweep in Tianshou: its buffers store the data, and any sampler chooses the rows.

from backsweep import Prioritized
from backsweep.integrations.tianshou import DQN, VectorReplayBuffer

buffer = VectorReplayBuffer(100_000, buffer_num=8, sampler=Prioritized(), seed=0)
collector = Collector(algorithm, train_envs, buffer)
"""

from __future__ import annotations

from typing import Any, Self

try:
    import tianshou  # noqa: F401
except ImportError as error:
    raise ImportError("backsweep.integrations.tianshou needs Tianshou: pip install 'backsweep[tianshou]'") from error

import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.algorithm.modelfree import dqn as tianshou_dqn
from tianshou.algorithm.modelfree.reinforce import SimpleLossTrainingStats
from tianshou.data import BaseCollector, Batch, to_torch_as
from tianshou.data import ReplayBuffer as TianshouBuffer
from tianshou.data import VectorReplayBuffer as TianshouVectorBuffer
from tianshou.highlevel.params.collector import CollectorFactoryDefault
from torch.nn import functional

from backsweep.integrations import seed_from_numpy
from backsweep.integrations.row_picker import RowPicker
from backsweep.jit.random_streams import checked_seed
from backsweep.replay.argument_checks import checked_sampler
from backsweep.samplers import Sampler

__all__ = ["DQN", "ReplayBuffer", "SampledCollectors", "VectorReplayBuffer"]


OPTIONS = ("stack_num", "ignore_obs_next", "save_only_last_obs", "sample_avail", "random_seed")
"""The options of Tianshou's buffers."""
NO_ENVIRONMENT = (
    "which of its environments the transitions belong to; copy them into a ReplayBuffer, or add them to this one "
    "step by step with add(batch, buffer_ids)"
)


class PickedRows:
    """The base of both buffers: a sampler provides rows and weights, and takes priorities."""

    picker: RowPicker

    def add(self, batch: Any, buffer_ids: Any = None) -> Any:
        """Add a transition for each environment, or for those that `buffer_ids` names."""
        answer = super().add(batch, buffer_ids)  # type: ignore[misc]
        places = np.asarray(answer[0]).reshape(-1)
        count = len(places)
        stacked = buffer_ids is not None or isinstance(self, TianshouVectorBuffer)
        lanes = np.arange(count) if buffer_ids is None else np.asarray(buffer_ids)
        self.picker.add(
            places,
            lanes,
            _each(batch.obs, count, stacked),
            batch.rew,
            _each(batch.obs_next, count, stacked),
            batch.terminated,
            batch.truncated,
        )
        return answer

    def _read_stored(self, places: NDArray[np.int64]) -> None:
        """Tell the sampler of transitions that were stored without `add`, one after the other."""
        following = places if self._save_obs_next else self.next(places)  # type: ignore[attr-defined]
        key = "obs_next" if self._save_obs_next else "obs"  # type: ignore[attr-defined]
        now, after = self.get(places, "obs", stack_num=1), self.get(following, key, stack_num=1)  # type: ignore[attr-defined]
        # Without stored successors those of last steps are not known.
        known = np.full(len(places), True) if following is places else following != places
        for i, place in enumerate(places.tolist()):
            reward, terminated, truncated = (getattr(self, name)[place] for name in ("rew", "terminated", "truncated"))
            truncated |= not (known[i] or terminated)
            now_here, after_here = [_plain(now[i])], [_plain(after[i])]
            self.picker.add([place], [0], now_here, reward, after_here, terminated, truncated, [known[i]])

    def sample_indices(self, batch_size: int | None) -> Any:
        """Return places; all of them for 0, none for a negative number, as in Tianshou."""
        if batch_size is None or batch_size <= 0 or len(self.picker) == 0:
            return super().sample_indices(batch_size)  # type: ignore[misc]
        return self.picker.pick(batch_size)[0]

    def __getitem__(self, index: Any) -> Any:
        """Return transitions, with importance weights if they are those of the last sample."""
        batch = super().__getitem__(index)  # type: ignore[misc]
        if isinstance(index, np.ndarray) and index.ndim == 1:
            batch.weight = self.picker.weights_of(index)
        return batch

    def update_weight(self, index: NDArray[np.int64], new_weight: Any) -> None:
        """Report TD errors; algorithms call this after each update."""
        self.picker.update(index, new_weight)

    @classmethod
    def load_hdf5(cls, path: str, device: str | None = None) -> Any:
        """Return a buffer that `save_hdf5` of this class wrote."""
        found = super().load_hdf5(path, device)  # type: ignore[misc]
        if not isinstance(found.__dict__.get("picker"), RowPicker):
            raise ValueError(
                f"path: {path} was saved by another buffer, without a sampler; load it with that class, "
                "and pass it to update of a ReplayBuffer from here"
            )
        return found

    def reset(self, keep_statistics: bool = False) -> None:
        """Remove all transitions."""
        super().reset(keep_statistics)  # type: ignore[misc]
        if "picker" in self.__dict__:
            self.picker.clear()


class ReplayBuffer(PickedRows, TianshouBuffer):
    """Tianshou's buffer for one environment, with a sampler.

    Parameters
    ----------
    size, options
        As in Tianshou, without `sample_avail`.
    sampler
        By default `Uniform()`.
    seed
        By default derived from numpy's global random state.
    """

    def __init__(self, size: int, *, sampler: Sampler | None = None, seed: int | None = None, **options: Any) -> None:
        _check_names(options)
        TianshouBuffer.__init__(self, size, **options)
        self.picker = RowPicker(size, 1, sampler, seed_from_numpy() if seed is None else seed)

    def update(self, buffer: TianshouBuffer) -> NDArray[np.int64]:
        """Copy all transitions of another buffer into this one; return their places."""
        places: NDArray[np.int64] = super().update(buffer)
        _, last = np.unique(places[::-1], return_index=True)  # of a place that was written twice the last content
        self._read_stored(places[np.sort(len(places) - 1 - last)])
        return places

    @classmethod
    def from_data(cls, *columns: Any, **named: Any) -> Self:
        """Return a buffer with these transitions and a uniform sampler; `update` copies them into another one."""
        made: Self = super().from_data(*columns, **named)
        made._read_stored(np.arange(len(made)))
        return made


class VectorReplayBuffer(PickedRows, TianshouVectorBuffer):
    """Tianshou's buffer for several environments, with a sampler.

    Parameters
    ----------
    total_size, buffer_num, options
        As in Tianshou.
    sampler, seed
        As for `ReplayBuffer`.
    """

    def __init__(
        self,
        total_size: int,
        buffer_num: int,
        *,
        sampler: Sampler | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        _check_names(options)
        TianshouVectorBuffer.__init__(self, total_size, buffer_num, **options)
        self.picker = RowPicker(self.maxsize, buffer_num, sampler, seed_from_numpy() if seed is None else seed)

    def update(self, buffer: TianshouBuffer) -> NDArray[np.int64]:
        """Refuse: as in Tianshou, nothing says which of its environments another buffer's transitions belong to."""
        raise NotImplementedError(f"update: a VectorReplayBuffer does not know {NO_ENVIRONMENT}")

    @classmethod
    def from_data(cls, *columns: Any, **named: Any) -> Self:
        """Refuse, for the same reason."""
        raise NotImplementedError(f"from_data: a VectorReplayBuffer does not know {NO_ENVIRONMENT}")


class DQN(tianshou_dqn.DQN[Any]):
    """Tianshou's DQN with importance weights also for the Huber loss, where the original ignores them."""

    def _update_with_batch(self, batch: Any) -> SimpleLossTrainingStats:
        if self.huber_loss_delta is None:
            return super()._update_with_batch(batch)
        self._periodically_update_lagged_network_weights()
        weight = to_torch_as(torch.as_tensor(np.asarray(batch.pop("weight", np.ones(len(batch))))), batch.returns)
        values = self.policy(batch).logits
        values = values[np.arange(len(values)), batch.act]
        returns = to_torch_as(batch.returns.flatten(), values)
        losses = functional.huber_loss(values, returns, delta=self.huber_loss_delta, reduction="none")
        loss = (losses * weight.to(values.device)).mean()
        batch.weight = returns - values
        self.optim.step(loss)
        return SimpleLossTrainingStats(loss=loss.item())


class SampledCollectors(CollectorFactoryDefault):
    """Makes collectors for Tianshou's high-level experiments, whose buffers choose rows by a sampler.

    An experiment's builder takes it: `builder.with_collector_factory(SampledCollectors(Prioritized()))`.

    Parameters
    ----------
    sampler, seed
        As for `ReplayBuffer`.
    """

    def __init__(self, sampler: Sampler | None = None, seed: int | None = None) -> None:
        self._sampler, self._seed = checked_sampler(sampler), None if seed is None else checked_seed(seed)

    def create_collector(
        self, algorithm: Any, vector_env: Any, buffer: TianshouBuffer | None = None, exploration_noise: bool = False
    ) -> BaseCollector[Any]:
        """Return a collector; one that is given a buffer gets another of the same size, with the sampler."""
        if buffer is not None:
            if type(buffer) not in (TianshouBuffer, TianshouVectorBuffer):
                raise TypeError(
                    "buffer must be a ReplayBuffer or VectorReplayBuffer of Tianshou's, to make one of its size with "
                    f"the sampler, got {type(buffer).__name__}"
                )
            options: dict[str, Any] = {"sampler": self._sampler, "seed": self._seed, **buffer.options}
            if isinstance(buffer, TianshouVectorBuffer):
                buffer = VectorReplayBuffer(buffer.maxsize, buffer.buffer_num, **options)
            else:
                buffer = ReplayBuffer(buffer.maxsize, **options)
        return super().create_collector(algorithm, vector_env, buffer, exploration_noise)


def _check_names(options: dict[str, Any]) -> None:
    """Refuse options that Tianshou's buffer does not have, which it would ignore, and one that samplers cannot have."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(f"options must be among sampler, seed, {', '.join(OPTIONS)}, got {name!r}")
        if name == "sample_avail" and value:
            raise ValueError("sample_avail must be False, got True: a sampler draws steps whose stack is not full, too")


def _each(observations: Any, count: int, stacked: bool) -> list[Any]:
    """Return the single observations of a batch, or the only one."""
    if not stacked:
        return [_plain(observations)]
    return [_plain(observations[i]) for i in range(count)]


def _plain(observation: Any) -> Any:
    return observation.to_dict() if isinstance(observation, Batch) else observation
