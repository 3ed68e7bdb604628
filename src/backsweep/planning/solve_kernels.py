"""Solving the model: from what changed to every value that depends on it.

A value may rise or fall. A rise is passed on from state to state, highest value first, so that nearly every state is
updated once. A fall must not be passed on like that: two states that lead to each other would keep each other's value
up and sink by one discount per update. So all states whose value depends on one that fell restart at -inf, and rise
again from those that did not:

    1. judge      each changed vertex: has its value risen, or fallen?
    2. collapse   the fallen, and all states that depend on them through their best action
    3. rise       highest first, until nothing changes by more than the tolerance
    4. settle     what is still at -inf is a closed loop, or depends on itself by chance: plain value iteration,
                  largest change first

An action that may lead back to its own state is solved at once: V = x + loop * V gives the candidate x / (1 - loop).

Every V is clipped to the limits. Without them, a state that once, by chance, led back to itself with a reward would be
worth that reward forever.

Kernels take the whole model; what they call for every state takes single arrays, because numba counts references to
all arrays of a bundle whenever it is passed on.
"""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Float64Vector, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.planning.model_kernels import (
    CANDIDATE,
    CHANGED,
    CHANGED_COUNT,
    COUNT,
    FALLEN,
    FIRST_ARC,
    FIRST_INTO,
    FIRST_PAIR,
    LOOP,
    MARK,
    NEXT_INTO,
    NEXT_OF_PAIR,
    NEXT_PAIR,
    PAIR,
    PROPAGATED,
    REWARDS,
    ROWS,
    SMALLEST_STEP,
    SUCCESSOR,
    UNSETTLED,
    UNTRIED,
    VALUE,
    VERTEX,
    Model,
    in_use,
    mark_changed,
)
from backsweep.planning.queue_kernels import (
    BUCKET,
    BUCKETS,
    Queue,
    change_bucket,
    leave_bucket,
    put,
    take_highest,
    value_bucket,
)


class Span(NamedTuple):
    """The lowest and the highest value, twice."""

    bounds: Float64Vector
    """Those to expect, which set the order of updates."""
    limits: Float64Vector
    """Those to which V is clipped."""


# -- one state --------------------------------------------------------------------------------------------------------


@inlined
def renew_candidate(
    pair: int,
    discount: float,
    numbers: NDArray[np.float64],
    pairs: NDArray[np.int32],
    pair_numbers: NDArray[np.float64],
    arcs: NDArray[np.int32],
) -> float:
    """Compute and return the value of a vertex if this action is always taken; -inf if a successor has no value."""
    vertex, count = pairs[pair, VERTEX], pairs[pair, COUNT]
    total, loop = pair_numbers[pair, REWARDS], 0
    link = pairs[pair, FIRST_ARC]
    while link:
        successor, rows = arcs[link - 1, SUCCESSOR], arcs[link - 1, ROWS]
        if successor == vertex:
            loop += rows
        elif discount > 0.0:  # 0 times the -inf of an unsolved successor would be NaN
            value = numbers[successor, VALUE]
            total += discount * rows * (-np.inf if np.isnan(value) else value)
        link = arcs[link - 1, NEXT_OF_PAIR]
    pair_numbers[pair, LOOP] = discount * loop / count
    candidate = total / (count - discount * loop)
    pair_numbers[pair, CANDIDATE] = candidate
    return candidate


@inlined
def clipped(value: float, limits: NDArray[np.float64]) -> float:
    """Return a value within the limits; -inf stays, because it means that there is no value yet."""
    return min(max(value, limits[0]), limits[1]) if value > -np.inf else value


@inlined
def backup(
    vertex: int,
    discount: float,
    vertices: NDArray[np.int32],
    numbers: NDArray[np.float64],
    pairs: NDArray[np.int32],
    pair_numbers: NDArray[np.float64],
    arcs: NDArray[np.int32],
    limits: NDArray[np.float64],
) -> float:
    """Compute all candidates of a vertex; return the best of them and of the untried actions' value, clipped."""
    best = numbers[vertex, UNTRIED]
    if np.isnan(best):
        best = -np.inf
    link = vertices[vertex, FIRST_PAIR]
    while link:
        best = max(best, renew_candidate(np.int64(link - 1), discount, numbers, pairs, pair_numbers, arcs))
        link = pairs[link - 1, NEXT_PAIR]
    return clipped(best, limits)


# -- the four parts ---------------------------------------------------------------------------------------------------


@kernel
def judge(discount: float, tolerance: float, span: Span, model: Model, queue: Queue) -> int:
    """Look at each changed vertex: queue those that rose, list those that fell or are new; return how many do.

    Unsettled vertices stay on the list of changed ones: `settle` resumes with them.
    """
    vertices, numbers = model.vertices, model.numbers
    pairs, pair_numbers, arcs = model.pairs, model.pair_numbers, model.arcs
    links, heads, highest = queue.links, queue.heads, queue.highest
    changed, waiting, bounds, limits = model.changed, queue.waiting, span.bounds, span.limits
    fallen, unsettled = 0, 0
    for i in range(model.counters[CHANGED_COUNT]):
        vertex = np.int64(changed[i])
        if not in_use(vertex, vertices):
            vertices[vertex, MARK] = 0
            numbers[vertex] = np.nan  # its value would be out of date if it were used again
            continue
        if vertices[vertex, MARK] & UNSETTLED:
            changed[unsettled] = vertex
            unsettled += 1
            continue
        vertices[vertex, MARK] &= ~CHANGED
        best = backup(vertex, discount, vertices, numbers, pairs, pair_numbers, arcs, limits)
        value, propagated = numbers[vertex, VALUE], numbers[vertex, PROPAGATED]
        if np.isnan(value) or best < value - tolerance or value < propagated - tolerance:
            if not vertices[vertex, MARK] & FALLEN:
                vertices[vertex, MARK] |= FALLEN
                waiting[fallen] = vertex
                fallen += 1
        else:
            numbers[vertex, VALUE] = max(best, value)
            if numbers[vertex, VALUE] > propagated + tolerance:
                put(vertex, value_bucket(best, bounds), links, heads, highest)
    model.counters[CHANGED_COUNT] = unsettled
    return fallen


@kernel
def collapse(fallen: int, tolerance: float, model: Model, queue: Queue) -> int:
    """Add all dependants to the list of fallen vertices and reset their values; return how many there are.

    A vertex depends on a successor if an action that may lead there is as good as its best one.
    """
    vertices, numbers = model.vertices, model.numbers
    pairs, pair_numbers, arcs = model.pairs, model.pair_numbers, model.arcs
    waiting = queue.waiting
    done = 0
    while done < fallen:
        vertex = waiting[done]
        done += 1
        link = vertices[vertex, FIRST_INTO]
        while link:
            pair = arcs[link - 1, PAIR]
            before = pairs[pair, VERTEX]
            if not vertices[before, MARK] & FALLEN and (
                pair_numbers[pair, CANDIDATE] >= numbers[before, VALUE] - 2.0 * tolerance
            ):
                vertices[before, MARK] |= FALLEN
                waiting[fallen] = before
                fallen += 1
            link = arcs[link - 1, NEXT_INTO]
    for i in range(fallen):
        vertex = waiting[i]
        numbers[vertex, VALUE] = -np.inf
        numbers[vertex, PROPAGATED] = -np.inf
        if queue.links[vertex, BUCKET]:
            leave_bucket(np.int64(vertex), queue.links, queue.heads)
    return fallen


@kernel
def rise(fallen: int, discount: float, tolerance: float, most: int, span: Span, model: Model, queue: Queue) -> int:
    """Compute the fallen vertices from those that did not fall, and propagate rises from at most `most` states.

    Returns the number of states. The rest is marked as changed.
    """
    vertices, numbers = model.vertices, model.numbers
    pairs, pair_numbers, arcs = model.pairs, model.pair_numbers, model.arcs
    links, heads, highest = queue.links, queue.heads, queue.highest
    bounds, limits = span.bounds, span.limits
    for i in range(fallen):
        vertex = np.int64(queue.waiting[i])
        best = backup(vertex, discount, vertices, numbers, pairs, pair_numbers, arcs, limits)
        if best > -np.inf:
            numbers[vertex, VALUE] = best
            put(vertex, value_bucket(best, bounds), links, heads, highest)
    passed = 0
    vertex = take_highest(links, heads, highest)
    while vertex >= 0:
        if passed >= most:
            mark_changed(vertex, vertices, model.changed, model.counters)
            vertex = take_highest(links, heads, highest)
            continue
        passed += 1
        numbers[vertex, PROPAGATED] = numbers[vertex, VALUE]
        link = vertices[vertex, FIRST_INTO]
        while link:
            pair = np.int64(arcs[link - 1, PAIR])
            before = np.int64(pairs[pair, VERTEX])
            if before != vertex:
                candidate = clipped(renew_candidate(pair, discount, numbers, pairs, pair_numbers, arcs), limits)
                if candidate > numbers[before, VALUE]:
                    numbers[before, VALUE] = candidate
                    if not candidate <= numbers[before, PROPAGATED] + tolerance:
                        put(before, value_bucket(candidate, bounds), links, heads, highest)
            link = arcs[link - 1, NEXT_INTO]
        vertex = take_highest(links, heads, highest)
    return passed


@inlined
def lowest_start(discount: float, low: float, smallest_step: float) -> float:
    """Return the initial value of a closed loop: the smallest reward received forever."""
    return max(low, smallest_step / (1.0 - discount)) if np.isfinite(smallest_step) else low


@inlined
def queue_unsettled(
    vertices: NDArray[np.int32],
    changed: NDArray[np.int32],
    counters: NDArray[np.int64],
    links: NDArray[np.int32],
    heads: NDArray[np.int32],
    highest: NDArray[np.int64],
) -> None:
    """Move unsettled vertices from the list of changed ones to the queue."""
    others = 0
    for i in range(counters[CHANGED_COUNT]):
        vertex = np.int64(changed[i])
        if vertices[vertex, MARK] & UNSETTLED:
            vertices[vertex, MARK] &= ~(CHANGED | UNSETTLED)
            put(vertex, BUCKETS - 1, links, heads, highest)
        else:
            changed[others] = vertex
            others += 1
    counters[CHANGED_COUNT] = others


@kernel
def settle(fallen: int, discount: float, tolerance: float, most: int, span: Span, model: Model, queue: Queue) -> int:
    """Solve the remaining vertices by value iteration with at most `most` updates; return their number.

    The rest is marked as changed and unsettled.
    """
    vertices, numbers = model.vertices, model.numbers
    pairs, pair_numbers, arcs = model.pairs, model.pair_numbers, model.arcs
    links, heads, highest = queue.links, queue.heads, queue.highest
    bounds, limits = span.bounds, span.limits
    queue_unsettled(vertices, model.changed, model.counters, links, heads, highest)
    for i in range(fallen):
        vertex = np.int64(queue.waiting[i])
        vertices[vertex, MARK] &= ~FALLEN
        if numbers[vertex, VALUE] == -np.inf:
            numbers[vertex, VALUE] = lowest_start(discount, bounds[0], model.extremes[SMALLEST_STEP])
            put(vertex, BUCKETS - 1, links, heads, highest)
    updates = 0
    vertex = take_highest(links, heads, highest)
    while vertex >= 0:
        if updates >= most:
            mark_changed(vertex, vertices, model.changed, model.counters)
            vertices[vertex, MARK] |= UNSETTLED
            vertex = take_highest(links, heads, highest)
            continue
        updates += 1
        value = backup(vertex, discount, vertices, numbers, pairs, pair_numbers, arcs, limits)
        numbers[vertex, VALUE] = value
        if not abs(value - numbers[vertex, PROPAGATED]) <= tolerance:
            numbers[vertex, PROPAGATED] = value
            link = vertices[vertex, FIRST_INTO]
            while link:
                pair = np.int64(arcs[link - 1, PAIR])
                before = np.int64(pairs[pair, VERTEX])
                old = pair_numbers[pair, CANDIDATE]
                new = renew_candidate(pair, discount, numbers, pairs, pair_numbers, arcs)
                matters = max(old, new) >= numbers[before, VALUE] - tolerance
                if before != vertex and matters and abs(new - old) > 0.1 * tolerance:
                    put(before, change_bucket(abs(new - old), tolerance), links, heads, highest)
                link = arcs[link - 1, NEXT_INTO]
        vertex = take_highest(links, heads, highest)
    return updates


@kernel
def mark_clipped(old: NDArray[np.float64], new: NDArray[np.float64], vertices_high: int, model: Model) -> None:
    """Mark the vertices whose values may change with the limits: those at an old limit or beyond a new one."""
    low, high = max(old[0], new[0]), min(old[1], new[1])
    for vertex in range(vertices_high):
        value = model.numbers[vertex, VALUE]
        if value >= high or value <= low:
            mark_changed(np.int64(vertex), model.vertices, model.changed, model.counters)


@kernel
def solve(discount: float, tolerance: float, most: int, span: Span, model: Model, queue: Queue) -> int:
    """Solve all changed vertices; return the number of state updates.

    If the limits have changed, `mark_clipped` comes first.
    """
    queue.highest[0] = -1
    changed = model.counters[CHANGED_COUNT]
    fallen = collapse(judge(discount, tolerance, span, model, queue), tolerance, model, queue)
    passed = rise(fallen, discount, tolerance, most, span, model, queue)
    return changed + passed + settle(fallen, discount, tolerance, most, span, model, queue)


@kernel
def solve_at(
    discount: float, tolerance: float, most: int, span_at: Addresses, model_at: Addresses, queue_at: Addresses
) -> int:
    """`solve`, given addresses, with which it is compiled in less time."""
    span, model = unpack(Span, borrow(span_at)), unpack(Model, borrow(model_at))
    return solve(discount, tolerance, most, span, model, unpack(Queue, borrow(queue_at)))
