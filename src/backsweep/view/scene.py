"""The contents of a page: arrays to draw, and facts in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.distances import Indices
from backsweep.replay import Replay
from backsweep.trees import leaves
from backsweep.view.facts import Facts, read_facts
from backsweep.view.layout import Forest, Layout, grow_forest, most_important, place
from backsweep.view.picking import SWEEP_BATCH, Played, count_draws, play_sweeps, topological_part
from backsweep.view.pictures import make_pictures

MOST_STATES = 100_000
EDGES_PER_STATE = 4
"""The largest number of edges, per state that may be shown; edges of the trees come first."""
MOST_NUMBERS = 12
FLAG_TERMINAL, FLAG_START, FLAG_REACHES_END = 1, 2, 4
NONE = np.uint32(0xFFFFFFFF)

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Scene:
    """The contents of a page."""

    arrays: Arrays
    words: dict[str, Any]


def make_scene(
    replay: Replay, *, title: str, action_names: Sequence[str] | None = None, most_states: int = MOST_STATES
) -> Scene:
    """Return the contents of a replay's page; the replay is not changed."""
    with replay._lock:
        facts = read_facts(replay)
        chosen = choose_states(facts, most_states)
        kept, new = chosen.kept, chosen.new
        draws = count_draws(replay, facts)
        sweeps = play_sweeps(replay, facts)
        arrays, words = _state_arrays(replay, facts, kept, draws)
    layout = place(chosen.forest)
    arrays |= place_arrays(facts, chosen, layout)
    arrays |= edge_arrays(facts, chosen, EDGES_PER_STATE * most_states)
    arrays |= _pair_arrays(replay, facts, kept, new)
    arrays |= _sweep_arrays(sweeps, new)
    words |= graph_words(facts, chosen, layout) | _words(replay, facts, len(arrays["edge"]), title, action_names)
    return Scene(arrays, words)


class Chosen(NamedTuple):
    """The states that a page shows."""

    kept: Indices
    """Their numbers."""
    new: Indices
    """Of each state: its index among them, -1 for the others; the last entry is that of -1."""
    forest: Forest
    """Their trees."""


def choose_states(facts: Facts, most: int) -> Chosen:
    """Return the most important states, at most `most` of them."""
    forest = grow_forest(facts)
    kept = most_important(forest, facts.visits, most)
    new = np.full(len(facts) + 1, -1, np.int64)
    new[kept] = np.arange(len(kept))
    return Chosen(kept, new, forest.pick(kept, new))


def place_arrays(facts: Facts, chosen: Chosen, layout: Layout) -> Arrays:
    """Return where each state is drawn, its distance to an end, its flags, visits and age."""
    kept, forest = chosen.kept, chosen.forest
    flags: NDArray[np.uint8] = np.where(facts.terminal[kept], FLAG_TERMINAL, 0).astype(np.uint8)
    flags[facts.start[kept]] |= FLAG_START
    flags[forest.reaches_end] |= FLAG_REACHES_END
    return {
        "position": layout.position,
        "distance": np.where(forest.reaches_end, forest.distance, -1).astype(np.int32),
        "flags": flags,
        "visits": facts.visits[kept].astype(np.uint32),
        "age": facts.age[kept].astype(np.uint32),
    }


def graph_words(facts: Facts, chosen: Chosen, layout: Layout) -> dict[str, Any]:
    """Return how many states, edges and ends there are, and the discs that states are placed in."""
    return {
        "states": len(facts),
        "shown": len(chosen.kept),
        "edges": int((facts.source != facts.target).sum()),
        "ends": int(facts.terminal.sum()),
        "endsDisc": None if layout.ends is None else [float(number) for number in layout.ends],
        "othersDisc": None if layout.others is None else [float(number) for number in layout.others],
    }


def _state_arrays(replay: Replay, facts: Facts, kept: Indices, draws: Indices) -> tuple[Arrays, dict[str, Any]]:
    store, space = replay.machinery.store, replay.observation_space
    arrays: Arrays = {
        "vertex": facts.vertex[kept].astype(np.uint32),
        "draws": draws[kept].astype(np.uint32),
        "value": facts.value[kept].astype(np.float32),
    }
    words: dict[str, Any] = {"picture": None}
    observation = facts.observation[kept]
    # If there is no space for all pictures, ends and often visited states come first.
    order = np.lexsort((-facts.visits[kept], ~facts.terminal[kept]))
    pictures = make_pictures(store, space, observation[order])
    if pictures is not None:
        numbers = np.empty_like(pictures.numbers)
        numbers[order] = pictures.numbers
        arrays |= {"tiles": pictures.tiles, "picture": numbers}
        words["picture"] = {"height": pictures.height, "width": pictures.width, "count": pictures.count}
    elif len(kept):
        seen = np.where(observation < 0, observation.max(initial=0), observation)
        views = store.observations(seen)
        flat = [leaf.reshape(len(kept), -1)[:, :MOST_NUMBERS].astype(np.float32) for leaf in leaves(views)]
        numbers_shown = np.concatenate(flat, axis=1)[:, :MOST_NUMBERS]
        numbers_shown[observation < 0] = np.nan
        arrays["numbers"] = np.ascontiguousarray(numbers_shown)
        words["numbers"] = sum(leaf[0].size for leaf in leaves(views))
    return arrays, words


def edge_arrays(facts: Facts, chosen: Chosen, most: int) -> Arrays:
    """Return the edges between the states shown as (source, target), and whether they belong to the trees."""
    source, target, forest = chosen.new[facts.source], chosen.new[facts.target], chosen.forest
    drawn = (source >= 0) & (target >= 0) & (source != target)
    source, target = source[drawn], target[drawn]
    trunk = (forest.parent[source] == target) | (forest.parent[target] == source)
    if len(source) > most:
        first = np.sort(np.argsort(~trunk, kind="stable")[:most])
        source, target, trunk = source[first], target[first], trunk[first]
    return {"edge": np.stack([source, target], axis=1).astype(np.uint32), "trunk": trunk.astype(np.uint8)}


def _pair_arrays(replay: Replay, facts: Facts, kept: Indices, new: Indices) -> Arrays:
    """Return the actions tried in each state: count, mean reward, most frequent successor and graph value."""
    action = np.zeros_like(facts.row_source) if facts.row_action is None else facts.row_action
    shown = new[facts.row_source] >= 0
    source, action, target = new[facts.row_source][shown], action[shown], new[facts.row_target][shown]
    actions = int(action.max(initial=0)) + 1
    pairs, pair = np.unique(source * actions + action, return_inverse=True)
    pair = pair.reshape(-1)
    times = np.bincount(pair, minlength=len(pairs))
    reward = np.bincount(pair, facts.row_reward[shown], minlength=len(pairs)) / np.maximum(times, 1)
    # The most frequent target of a pair is written last.
    arcs, often = np.unique(np.stack([pair, target]), axis=1, return_counts=True)
    rising = np.argsort(often, kind="stable")
    leads_to = np.full(len(pairs), -1, np.int64)
    leads_to[arcs[0][rising]] = arcs[1][rising]
    first = np.searchsorted(pairs, np.arange(len(kept) + 1) * actions)
    return {
        "pair_first": first.astype(np.uint32),
        "pair_action": (pairs % actions).astype(np.uint16),
        "pair_times": times.astype(np.uint32),
        "pair_reward": reward.astype(np.float32),
        "pair_target": np.where(leads_to < 0, NONE, leads_to).astype(np.uint32),
        "pair_value": _pair_values(replay, facts.vertex[kept], pairs // actions, pairs % actions),
    }


def _pair_values(replay: Replay, vertex: Indices, state: Indices, action: Indices) -> NDArray[np.float32]:
    planner = replay.machinery.planner
    if planner is None:
        return np.full(len(state), np.nan, np.float32)
    values = np.stack([planner.action_values(int(number)) for number in vertex.tolist()])
    return values[state, action].astype(np.float32)


def _sweep_arrays(sweeps: Played, new: Indices) -> Arrays:
    shown = [states[states >= 0] for states in (new[batch] for batch in sweeps.batches)]
    ends = np.cumsum([0, *(len(batch) for batch in shown)])
    states = np.concatenate(shown) if shown else np.empty(0, np.int64)
    return {
        "sweep_state": states.astype(np.uint32),
        "sweep_end": ends.astype(np.uint32),
        "sweep_number": np.array(sweeps.sweep, np.uint32),
    }


def _words(replay: Replay, facts: Facts, edges: int, title: str, action_names: Sequence[str] | None) -> dict[str, Any]:
    return {
        "title": title,
        "rows": len(replay),
        "shownEdges": edges,
        "planned": bool(np.isfinite(facts.value).any()),
        "sampler": repr(replay.sampler),
        "ownSweep": topological_part(replay.sampler) is not None,
        "sweepBatch": SWEEP_BATCH,
        "discreteActions": facts.row_action is not None,
        "actions": None if action_names is None else [str(name) for name in action_names],
    }
