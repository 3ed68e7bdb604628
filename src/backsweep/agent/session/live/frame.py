"""A frame of the live page: a run's graph at one moment, as bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.replay import Replay
from backsweep.store.ring_kernels import ENDED, FLAGS, NEXT_OBSERVATION, OBSERVATION, UNSEEN
from backsweep.view.facts import Facts, read_facts
from backsweep.view.layout import place
from backsweep.view.page import ALIGNMENT, pack
from backsweep.view.pictures import make_pictures
from backsweep.view.scene import NONE, Arrays, choose_states, edge_arrays, graph_words, place_arrays

MOST_STATES = 20_000
MOST_ASKED = 2_000
"""States whose values the network computes for a frame, if no values are planned."""
EDGES_PER_STATE = 3
LONGEST_EPISODE = 400
"""The last steps of an episode that are shown."""
LOOK_BACK = 20_000
"""The newest rows among which the end of an episode is searched."""

StateValues = Callable[[Any], NDArray[np.floating]]
"""From a batch of observations to the value of each."""


def make_frame(replay: Replay, state_values: StateValues, words: dict[str, Any]) -> bytes:
    """Return the graph of a replay, if it has one, and its newest complete episode."""
    about: dict[str, Any]
    rows = newest_episode(replay)
    if replay.machinery.graph is None:
        arrays, about = _observed(replay, rows), {"states": 0, "shown": 0}
        return frame_bytes(arrays, {**words, **about, **_picture_words(arrays)})
    facts = read_facts(replay)
    chosen = choose_states(facts, MOST_STATES)
    kept, layout = chosen.kept, place(chosen.forest)
    value, planned = facts.value[kept].astype(np.float32), replay.machinery.planner is not None
    if not planned:
        value = _network_values(replay, facts.observation[kept], chosen.forest.distance, state_values)
    arrays = {
        "id": facts.stamp[kept].astype(np.uint32),
        "value": value,
        **place_arrays(facts, chosen, layout),
        **edge_arrays(facts, chosen, EDGES_PER_STATE * MOST_STATES),
        **_episode_states(replay, facts, rows, chosen.new),
        **_observed(replay, rows),
    }
    about = {**graph_words(facts, chosen, layout), "planned": planned}
    return frame_bytes(arrays, {**words, **about, **_picture_words(arrays)})


def frame_bytes(arrays: Arrays, words: dict[str, Any]) -> bytes:
    """Return one block: the length of the words, the words as JSON, and the arrays."""
    data, table = pack(arrays)
    head = json.dumps({**words, "arrays": table}, separators=(",", ":"), allow_nan=False).encode()
    head += b" " * (-(len(head) + 4) % ALIGNMENT)
    return struct.pack("<I", len(head)) + head + data


def newest_episode(replay: Replay) -> NDArray[np.int64]:
    """Return the last rows of the newest episode that has ended, if any."""
    store = replay.machinery.store
    serial = np.arange(max(store.oldest, store.total - LOOK_BACK), store.total)
    ended = serial[(store.rows[serial % store.capacity, FLAGS] & ENDED) != 0]
    if not len(ended):
        return np.empty(0, np.int64)
    return replay.episode(int(ended[-1]))[-LONGEST_EPISODE:]


def _episode_states(replay: Replay, facts: Facts, rows: NDArray[np.int64], new: NDArray[np.int64]) -> Arrays:
    """Return the states of an episode, one more than its steps; NONE for states that are not shown."""
    places = rows - replay.oldest
    states = np.concatenate([facts.row_source[places], facts.row_target[places[-1:]]])
    shown = new[states]
    return {"episode_state": np.where(shown < 0, NONE, shown).astype(np.uint32)}


def _observed(replay: Replay, rows: NDArray[np.int64]) -> Arrays:
    """Return the rewards, actions and pictures of an episode."""
    if not len(rows):
        return {"episode_reward": np.empty(0, np.float32)}
    batch = replay.read(rows, n_step=1)
    store = replay.machinery.store
    ring = store.rows[rows % store.capacity]
    last = -1 if ring[-1, FLAGS] & UNSEEN else ring[-1, NEXT_OBSERVATION]
    pictures = make_pictures(store, replay.observation_space, np.append(ring[:, OBSERVATION], last).astype(np.int64))
    action = np.asarray(batch.action).reshape(len(rows), -1)[:, 0]
    arrays: Arrays = {"episode_reward": batch.reward.astype(np.float32), "episode_action": action.astype(np.int32)}
    if pictures is not None:
        arrays |= {"tiles": pictures.tiles, "picture": pictures.numbers}
        arrays["picture_size"] = np.array([pictures.width, pictures.height], np.uint32)
    return arrays


def _picture_words(arrays: Arrays) -> dict[str, Any]:
    if "picture_size" not in arrays:
        return {"picture": None}
    width, height = arrays.pop("picture_size").tolist()
    return {"picture": {"width": width, "height": height}}


def _network_values(
    replay: Replay, observation: NDArray[np.int64], distance: NDArray[np.int64], state_values: StateValues
) -> NDArray[np.float32]:
    """Return the network's values of the states nearest to an end, NaN for the others."""
    value = np.full(len(observation), np.nan, np.float32)
    known = np.flatnonzero(observation >= 0)
    asked = known[np.argsort(distance[known], kind="stable")[:MOST_ASKED]]
    if len(asked):
        value[asked] = state_values(replay.machinery.store.observations(observation[asked]))
    return value
