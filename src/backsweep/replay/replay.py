"""Replay: the class that users work with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from inspect import isfunction
from typing import TYPE_CHECKING, Any, overload

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import Encoder
from backsweep.planning.graph_values import checked_bounds
from backsweep.planning.planner import Progress, QValues, Renewal
from backsweep.replay.argument_checks import checked_path, positive_int
from backsweep.replay.autoreset import (
    options_of_env,
    options_of_envs,
)
from backsweep.replay.filling import Filling
from backsweep.replay.reading import Reading
from backsweep.samplers import Sampler
from backsweep.store.layout import host_array
from backsweep.trees import map_tree
from backsweep.types import Rows

if TYPE_CHECKING:
    from backsweep.view import GraphPage


class Replay(Filling, Reading):
    """Experience replay: transitions go in, batches come out.

    Parameters
    ----------
    observation_space, action_space
        Box, Discrete, MultiDiscrete or MultiBinary spaces, or Dicts or Tuples of them (actions: not Dicts or Tuples).
    capacity
        The largest number of transitions; new ones overwrite the oldest. Memory is allocated as it is used.
    sampler
        How rows are chosen: `Uniform`, `Prioritized`, `EpisodicBackward`, `Topological`, a `Mixture` of them, or your
        own. It is a frozen configuration and may be given to several replays.
    encoder
        How observations become vertices of the graph. By default `DiscreteKey` for discrete observations and
        `RandomProjection(dim=3)` for all others.
    values
        ``GraphValues(...)`` plans on the stored graph: after each `renew_values`, batches carry finished targets. For
        discrete actions and ``n_step=1``.
    num_envs
        With n > 1, `add` takes arrays with a leading axis n; each lane is its own stream of episodes.
    n_step, gamma
        Up to `n_step` steps are combined into one transition when rows are read; `gamma` is the discount.
    frame_stack
        With k > 1, observations are stacks of k frames along their first or last axis (which has k times the channels
        of a frame), and each frame is stored once. Also for images that are drawn from tiles: with ``frame_stack=6``
        an image of (84, 84, 3) is six bands of 14 rows, and each distinct band is stored once.
    autoreset
        How the environments start their next episode: ``"disabled"``, ``"next_step"``, ``"same_step"`` or
        ``"hidden"``; `for_envs` reads it from the environment. In next-step mode, Gymnasium's default for vector
        environments, the call after an episode's end carries no transition for that lane and is skipped. In same-step
        mode the last observations are passed as `final_observation`. ``"hidden"`` is for environments that reset in the
        same step and never show them.
    check_autoreset
        What to do if the first finished episodes contradict the mode: ``"warn"``, ``"refuse"`` or nothing (``"off"``).
    cast
        Whether floats of another size are rounded to the space's dtype; otherwise they are refused.
    file
        A folder for a memory-mapped file with the observations, for replays larger than memory. The file is temporary;
        use `save` to keep a replay.
    seed
        The same seed and the same calls give the same rows on every machine.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from backsweep import Replay, Topological
    >>> replay = Replay(gym.spaces.Discrete(4), gym.spaces.Discrete(2), capacity=100, sampler=Topological())
    >>> for state in range(3):  # a corridor of four states
    ...     row = replay.add(state, 1, float(state == 2), state + 1, terminated=state == 2, truncated=False)
    >>> batch = replay.sample(3)
    >>> batch.observation.tolist(), batch.reward.tolist()  # successors first
    ([2, 1, 0], [1.0, 0.0, 0.0])
    >>> len(replay), replay.graph.num_vertices
    (3, 4)
    """

    @classmethod
    def for_env(cls, env: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for one environment, with its spaces; `options` are those of `Replay`."""
        return cls(**{**options_of_env(env), "capacity": capacity, "sampler": sampler, **options})

    @classmethod
    def for_envs(cls, envs: Any, capacity: int = 1_000_000, sampler: Sampler | None = None, **options: Any) -> Replay:
        """Return a replay for a vector environment: spaces, number of lanes and autoreset mode are read from it.

        Supports vector environments of Gymnasium, EnvPool, PufferLib and Stable-Baselines3. `options` are those of
        `Replay` and take precedence.
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
        """Plan on the stored graph; batches carry its targets from then on.

        Call it about as often as you copy a target network. Its cost is the evaluation of states by
        the network, plus work in proportion to what changed since the last call.

        Parameters
        ----------
        q_values
            A function from a batch of observations to an array or tensor (n, actions): the target network. It is called
            only with states that have untried actions.
        bounds
            The lowest and the highest possible value, to which the network's values are clipped. None: learned from
            the stored rewards; `stats` shows them.
        batch_size
            Observations per call of `q_values`.
        progress
            Called with (observations done, total) after each call of `q_values`.

        Returns
        -------
        Renewal
            The number of states evaluated by the network, of state updates, and of states left for the next renewal.
        """
        if self._planner is None:
            raise ValueError("renew_values needs a replay that plans: make it with values=GraphValues()")
        if not callable(q_values):
            raise TypeError(f"q_values must be a function of observations, got {type(q_values).__name__}")
        batch_size = positive_int("batch_size", batch_size)
        if bounds is not None:
            bounds = checked_bounds(bounds)
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be a function of (done, total) or None, got {progress!r:.200}")
        with self._lock:
            return self._planner.renew(q_values, bounds, batch_size, progress)

    @overload
    def explore(self, observation: Any, unit: float) -> int: ...

    @overload
    def explore(self, observation: Any, unit: NDArray[Any]) -> NDArray[np.int64]: ...

    def explore(self, observation: Any, unit: float | NDArray[Any]) -> int | NDArray[np.int64]:
        """Return a random action after `observation`, preferring what the stored graph knows little about.

        Call it instead of drawing a uniform action. Untried actions count 1; tried ones 1 / (1 + visits of the state
        they led to), and nothing if they changed nothing or ended the episode. All count the same in a state that is
        not stored. It needs no renewal: rows count as soon as they are added.

        Parameters
        ----------
        observation
            A single observation, or those of several environments with a leading axis.
        unit
            A random number in [0, 1), by which the action is chosen; for several observations an array with one number
            each. The result is then an array of actions.

        Examples
        --------
        >>> import gymnasium as gym
        >>> from backsweep import GraphValues
        >>> replay = Replay(gym.spaces.Discrete(3), gym.spaces.Discrete(2), 100, values=GraphValues())
        >>> _ = replay.add(0, 0, 0.0, 0, terminated=False, truncated=False)  # action 0 changes nothing
        >>> {replay.explore(0, unit) for unit in (0.0, 0.4, 0.9)}
        {1}
        >>> rng = np.random.default_rng(0)
        >>> replay.explore(np.array([0, 0, 0, 2]), rng.random(4)).tolist()  # four environments
        [1, 1, 1, 0]
        """
        if self._planner is None:
            raise ValueError("explore needs a replay that plans: make it with values=GraphValues()")
        if isinstance(unit, np.ndarray) and unit.ndim == 1:
            return np.array([self.explore(*one) for one in self._each(observation, unit)], np.int64)
        if isinstance(unit, bool) or not isinstance(unit, (float, int, np.floating)) or not 0.0 <= unit < 1.0:
            raise ValueError(f"unit must be a number in [0, 1), or an array of them with one axis, got {unit!r}")
        with self._lock:
            return self._planner.explore(observation, float(unit))

    def _each(self, observations: Any, units: NDArray[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the observation of each environment with its unit."""

        def batched(_: gym.Space[Any], seen: Any) -> NDArray[Any]:
            array = host_array(seen, "observation")
            if array.shape[:1] != units.shape:
                expected = f"a leading axis of {len(units)}, as unit has"
                raise ValueError(f"observation must have {expected}, got shape {array.shape}")
            return array

        arrays = map_tree(batched, self.observation_space, observations)
        for place, unit in enumerate(units):
            yield map_tree(lambda _, seen, at=place: seen[at], self.observation_space, arrays), unit

    def view(
        self,
        *,
        title: str = "replay graph",
        action_names: Sequence[str] | None = None,
        most_states: int = 100_000,
        height: int = 640,
    ) -> GraphPage:
        """Return a page with the graph of the live transitions, which notebooks display.

        Ends are in the middle, and each step away is a ring further out. States are coloured by value, steps to an end,
        visits, age or the sampler's draws; sweeps play batch by batch. The replay is not changed. Outside of
        notebooks, ``replay.view().save("graph.html")`` writes the page, which works offline.

        Parameters
        ----------
        title
            Title of the page.
        action_names
            Names for the actions 0, 1 and so on.
        most_states
            If there are more states, those with the smallest subtrees are left out, and the page says so.
        height
            Height of the page in a notebook, in pixels.
        """
        from backsweep.view import graph_page

        return graph_page(self, title=title, action_names=action_names, most_states=most_states, height=height)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the replay to `folder`; only changes since the last save there are written.

        A crash at any moment leaves the old save or the new one. Adding and sampling wait until it is done.
        """
        from backsweep.saving import save_replay

        place = checked_path("folder", folder)
        with self._lock:
            save_replay(self, place)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        sampler: Sampler | None = None,
        encoder: Encoder | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Replay:
        """Return the replay that was saved in `folder`; it continues exactly where that one was.

        Parameters
        ----------
        folder
            A folder written by `save`.
        sampler, encoder
            Needed only if you defined their classes yourself.
        file
            As for a new replay.
        """
        from backsweep.saving import load_replay

        place, work = checked_path("folder", folder), None if file is None else checked_path("file", file)
        return load_replay(place, sampler=sampler, encoder=encoder, file=work)

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
            Other arguments of `Replay`; the capacity defaults to the data set's number of steps.
        """
        from backsweep.minari_data import replay_from_minari

        return replay_from_minari(dataset, **options)

    def add_minari(self, dataset: Any) -> Rows:
        """Add every transition of a Minari data set and return their row numbers; running episodes are not affected.

        Episodes are distributed over the lanes. As always, new rows overwrite the oldest.

        Parameters
        ----------
        dataset
            A `minari.MinariDataset` with the replay's spaces, or the id of one that is stored locally.
        """
        from backsweep.minari_data import add_minari

        return add_minari(self, dataset)

    def to_minari(self, dataset_id: str, **details: Any) -> Any:
        """Store the live transitions as a local Minari data set and return it.

        The last step of an unfinished episode is stored as truncated; overwritten first steps are missing.

        Parameters
        ----------
        dataset_id
            The new data set's id, such as "nchain/random-v0".
        details
            Passed to `minari.create_dataset_from_buffers`: `env`, `author`, `description` and so on.
        """
        from backsweep.minari_data import replay_to_minari

        return replay_to_minari(self, dataset_id, **details)


for half in Replay.__bases__:  # Python's messages name the class that its user knows, not the one of a half
    for name, method in vars(half).items():
        if isfunction(method) and not name.startswith("_"):
            method.__qualname__ = f"{Replay.__name__}.{name}"
            method.__module__ = __name__  # where pickle looks for that name
