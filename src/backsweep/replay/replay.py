"""Replay: a store and a sampler behind one face."""

from __future__ import annotations

import os
from typing import Any

from backsweep.encoding import Encoder
from backsweep.planning.planner import Progress, QValues, Renewal, checked_bounds
from backsweep.replay.autoreset import (
    options_of_env,
    options_of_envs,
)
from backsweep.replay.checking import (
    positive_int,
)
from backsweep.replay.filling import Filling
from backsweep.replay.reading import Reading
from backsweep.samplers import Sampler
from backsweep.types import Rows


class Replay(Filling, Reading):
    """Experience replay: transitions go in, batches come out.

    Parameters
    ----------
    observation_space, action_space
        Box, Discrete, MultiDiscrete or MultiBinary spaces, or Dicts or Tuples of them (actions: not Dicts or Tuples).
    capacity
        How many transitions are kept; the oldest make way. Memory is taken as it is used.
    sampler
        How rows are chosen: `Uniform`, `Prioritized`, `EpisodicBackward`, `Topological`, a `Mixture` of them, or your
        own. It is a configuration and may be given to several replays.
    encoder
        How observations become vertices of the graph. By default `DiscreteKey` for discrete observations and
        `RandomProjection(dim=3)` for all others.
    values
        ``GraphValues(...)`` plans on the stored graph: after each `renew_values`, batches carry finished targets. For
        discrete actions and ``n_step=1``.
    num_envs
        With n > 1, `add` takes arrays with a leading axis n; each lane is its own stream of episodes.
    n_step, gamma
        Fold up to `n_step` steps into one transition when rows are read; `gamma` is the discount.
    frame_stack
        With k > 1, observations are stacks of k frames along their first or last axis (which has k times the channels
        of a frame), and each frame is kept once.
    autoreset
        How the environments start their next episode: ``"disabled"``, ``"next_step"``, ``"same_step"`` or
        ``"hidden"``; `for_envs` reads it from the environment. In next-step mode, Gymnasium's default for vector
        environments, the call after an episode's end carries no transition for that lane and is left out. In same-step
        mode the last observations come as `final_observation`. ``"hidden"`` is for environments that reset in the same
        step and never show those.
    check_autoreset
        What to do if the first episodes that end contradict that: ``"warn"``, ``"refuse"`` or nothing (``"off"``).
    cast
        Whether floats of another size are rounded to those of their space; without it they are refused.
    file
        A folder for a memory-mapped file that holds the observations, for replays larger than memory. It is working
        memory, not a save.
    seed
        The same seed and the same calls give the same rows on every machine.
    """

    @classmethod
    def for_env(cls, env: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for one environment, whose spaces it reads; `options` are those of `Replay`."""
        return cls(**{**options_of_env(env), "capacity": capacity, "sampler": sampler, **options})

    @classmethod
    def for_envs(cls, envs: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for a vector environment: spaces, number of lanes and autoreset mode are read from it.

        It knows vector environments of Gymnasium, EnvPool, PufferLib and Stable-Baselines3. `options` are those of
        `Replay` and win over what was read.
        """
        return cls(**{**options_of_envs(envs), "capacity": capacity, "sampler": sampler, **options})

    def renew_values(
        self,
        q_values: QValues,
        *,
        bounds: tuple[float, float] | None = None,
        batch_size: int = 1024,
        progress: Progress | None = None,
    ) -> Renewal:
        """Plan on the stored graph; from here on batches carry targets that follow from it.

        Call it about as often as you copy a target network. It costs what has changed since the last call, and a pass
        of the network over the states that it is asked about.

        Parameters
        ----------
        q_values
            A function from a batch of observations to an array or tensor (n, actions): the target network. It is asked
            only about states with actions that were never tried, or with none tried at all.
        bounds
            The lowest and the highest value that an episode can have, to which the network's values are clipped. None:
            learned from the rewards that were stored; `stats` shows them.
        batch_size
            Observations per call of `q_values`.
        progress
            Called with (observations done, observations in all) after each call of `q_values`.

        Returns
        -------
        Renewal
            How many states the network was asked about, how many state updates it took to solve, and how many states
            the next renewal has to continue with.
        """
        if self._planner is None:
            raise ValueError("renew_values needs a replay that plans: make it with values=GraphValues()")
        if not callable(q_values):
            raise TypeError(f"q_values must be a function of observations, got {type(q_values).__name__}")
        batch_size = positive_int("batch_size", batch_size)
        if bounds is not None:
            bounds = checked_bounds(bounds)
        with self._lock:
            return self._planner.renew(q_values, bounds, batch_size, progress)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything to `folder`; only what changed since the last save there is written.

        A crash at any moment leaves the old save or the new one. Adding and sampling wait meanwhile.
        """
        from backsweep.saving import save_replay

        with self._lock:
            save_replay(self, folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        sampler: Sampler | None = None,
        encoder: Encoder | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Replay:
        """Return the replay that was saved in `folder`; it goes on exactly where that one was.

        Parameters
        ----------
        folder
            Where `save` wrote.
        sampler, encoder
            Needed only if they were of classes of your own.
        file
            As for a new replay.
        """
        from backsweep.saving import load_replay

        return load_replay(folder, sampler=sampler, encoder=encoder, file=file)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the files of `save`, for frameworks that checkpoint by pickle."""
        from backsweep.saving import replay_from_files, replay_to_files

        with self._lock:
            return replay_from_files, replay_to_files(self)

    @classmethod
    def from_minari(cls, dataset: Any, **options: Any) -> Replay:
        """Return a replay that holds every transition of a Minari data set.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset`, or the id of one that is stored locally.
        options
            What `Replay` takes beside the spaces; by default the capacity is the data set's number of steps.
        """
        from backsweep.minari_data import replay_from_minari

        return replay_from_minari(dataset, **options)

    def add_minari(self, dataset: Any) -> Rows:
        """Add every transition of a Minari data set and return their row numbers; environments then go on as they were.

        Episodes are spread over the lanes. Those that do not fit push out the oldest rows, as always.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset` with the replay's spaces, or the id of one that is stored locally.
        """
        from backsweep.minari_data import add_minari

        return add_minari(self, dataset)

    def to_minari(self, dataset_id: str, **details: Any) -> Any:
        """Store the live transitions as a local Minari data set and return it.

        An episode without an end is stored with its last step marked as truncated.

        Parameters
        ----------
        dataset_id
            The new data set's id, such as "nchain/random-v0".
        details
            Passed on to `minari.create_dataset_from_buffers`: `env`, `author`, `description` and so on.
        """
        from backsweep.minari_data import replay_to_minari

        return replay_to_minari(self, dataset_id, **details)
