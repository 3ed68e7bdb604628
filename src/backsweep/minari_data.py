"""Minari data sets as filled replays, and replays as Minari data sets.

episode of a data set     observations o0 o1 ... oT     actions a0 ... aT-1     rewards, terminations, truncations
rows of a replay          (o0, a0, r0, o1), (o1, a1, r1, o2), ..., (oT-1, aT-1, rT-1, oT)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.store.layout import host_array
from backsweep.store.ring_kernels import FLAGS, REWARD, TERMINATED, TRUNCATED
from backsweep.trees import map_tree

if TYPE_CHECKING:
    from backsweep.replay import Replay
    from backsweep.types import Rows


def replay_from_minari(dataset: Any, **replay_options: Any) -> Replay:
    """Return a replay that holds the transitions of a data set; see `Replay.from_minari`."""
    from backsweep.replay import Replay

    dataset = _loaded(dataset)
    options = {"capacity": int(dataset.total_steps), **replay_options}
    replay = Replay(dataset.observation_space, dataset.action_space, **options)
    add_minari(replay, dataset)
    return replay


def add_minari(replay: Replay, dataset: Any, actions: Callable[[NDArray[Any]], NDArray[Any]] | None = None) -> Rows:
    """Add the transitions of a data set to a replay, one episode after another, and return their row numbers.

    `actions`, if given, converts an episode's actions to those of the replay.
    """
    dataset = _loaded(dataset)
    for name in ("observation_space", "action_space") if actions is None else ("observation_space",):
        theirs, ours = getattr(dataset, name), getattr(replay, name)
        if _form(theirs) != _form(ours):
            raise ValueError(f"dataset must have the replay's {name}, {ours}, got {theirs}")
    rows = []
    with replay._lock:
        for number, episode in enumerate(dataset.iterate_episodes()):
            lane = number % replay.num_envs
            ended = host_array(episode.terminations) | host_array(episode.truncations)
            ended[-1] = True
            taken = episode.actions if actions is None else actions(episode.actions)
            start = 0
            for end in np.flatnonzero(ended).tolist():
                terminated = bool(episode.terminations[end])
                span = slice(start, end + 1)
                rows.append(
                    replay.extend(
                        _at(episode.observations, slice(start, end + 2)),
                        _at(taken, span),
                        host_array(episode.rewards)[span],
                        terminated,
                        # Data that stops without a flag was truncated: the next episode does not continue it.
                        bool(episode.truncations[end]) or not terminated,
                        lane=lane,
                    )
                )
                start = end + 1
    return np.concatenate(rows)


def _loaded(dataset: Any) -> Any:
    minari = _import_minari()
    if isinstance(dataset, str):
        dataset = minari.load_dataset(dataset)
    if not isinstance(dataset, minari.MinariDataset):
        raise TypeError(f"dataset must be a Minari data set or the id of one, got {type(dataset).__name__}")
    if int(dataset.total_steps) == 0:
        raise ValueError("dataset must hold at least one step, got none")
    return dataset


def _form(space: gym.Space[Any]) -> Any:
    """Return what two compatible spaces have in common; bounds may differ."""
    return map_tree(lambda leaf: (type(leaf).__name__, leaf.shape, str(leaf.dtype)), space)


def replay_to_minari(replay: Replay, dataset_id: str, **details: Any) -> Any:
    """Store the live transitions of a replay as a local Minari data set and return it; see `Replay.to_minari`."""
    minari = _import_minari()
    if len(replay) == 0:
        raise ValueError("replay must hold at least one transition, got none")
    from minari.data_collector import EpisodeBuffer

    with replay._lock:
        episodes = [
            EpisodeBuffer(id=number, **_episode_data(replay, rows))
            for number, rows in enumerate(_live_episodes(replay))
        ]
    # Images are stored unchanged: the format's default compression is lossy, which would create new states.
    return minari.create_dataset_from_buffers(
        dataset_id,
        episodes,
        **{
            "observation_space": replay.observation_space,
            "action_space": replay.action_space,
            "jpeg_encoding": False,
            **details,
        },
    )


def _live_episodes(replay: Replay) -> list[Rows]:
    """Return the rows of every episode, episodes in the order of their first live row."""
    store = replay._store
    taken = np.zeros(len(store), dtype=np.bool_)
    episodes = []
    for row in range(store.oldest, store.total):
        if not taken[row - store.oldest]:
            rows = replay.episode(row)
            taken[rows - store.oldest] = True
            episodes.append(rows)
    return episodes


def _episode_data(replay: Replay, rows: Rows) -> dict[str, Any]:
    """Return one episode in Minari's form."""
    store = replay._store
    slots = rows % store.capacity
    out = store.read(rows, 1, 1.0)
    flags = store.rows[slots, FLAGS]
    terminations, truncations = (flags & TERMINATED) != 0, (flags & TRUNCATED) != 0
    truncations[-1] |= not terminations[-1]
    return {
        "observations": _with_last(out.observation, out.next_observation),
        "actions": np.array(out.action),
        "rewards": store.values[slots, REWARD].tolist(),
        "terminations": terminations.tolist(),
        "truncations": truncations.tolist(),
    }


def _with_last(observations: Any, successors: Any) -> Any:
    """Return copies of the observations and the last successor."""
    return map_tree(lambda seen, after: np.concatenate([seen, after[-1:]]), observations, successors)


def _at(tree: Any, step: slice) -> Any:
    """Return some steps of an array, or of a dict or tuple of arrays."""
    return map_tree(lambda array: array[step], tree)


def _import_minari() -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError("data sets need Minari: pip install 'backsweep[minari]'") from error
    return minari
