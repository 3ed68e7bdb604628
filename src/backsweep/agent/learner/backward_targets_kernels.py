"""EBU's walk of one run: which episodes a batch begins, and the target of each row that is walked through.

A run's walk is a list of rows, newest first, with their targets, and how far it has come:

    rows      [ row of the last step | the one before | ... ]      position  [ PLACE | COUNT ]
    targets   [ its target           | ...                  ]
    left_out  [ whether it is among an episode's first steps, which are skipped ]

A batch continues the walk and may begin others. `find_episodes` lists those, so that the caller can evaluate their next
states; then `walk_through` computes their targets and gives every row of the batch its own.

    steps     rows of the episodes found, one episode after another, each in time order
    lengths   how many steps each has, 0 after the last
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, BoolVector, Float64Vector, Int64Vector, unpack, viewed
from backsweep.jit.compilation import inlined, kernel
from backsweep.samplers.episodic_backward_kernels import episode_rows
from backsweep.store.ring_kernels import EPISODE, FLAGS, LENGTH, REWARD, TERMINATED, TRUNCATED, Ring

PLACE = 0
COUNT = 1
POSITIONS = 2


class Walk(NamedTuple):
    """One run's walk, its batch, and the episodes that the batch begins."""

    position: Int64Vector
    rows: Int64Vector
    targets: Float64Vector
    left_out: BoolVector
    batch: Int64Vector
    """The rows of the batch."""
    walked: BoolVector
    """Which of them are part of a walk."""
    skipped: BoolVector
    """Which of them are skipped, by `walk_through`."""
    steps: Int64Vector
    lengths: Int64Vector


class Backward(NamedTuple):
    """How EBU computes targets."""

    gamma: float
    bootstrap: bool
    """Whether values after a time limit count."""
    double: bool
    """Whether the best next action is the online network's."""
    diffusion: float
    skipped_steps: int
    """The number of first steps of an episode that are skipped."""


@inlined
def stops(flags: int, bootstrap_at_timeout: bool) -> bool:
    """Say whether no value comes after a row: it terminates, or a time limit ended it and that counts as an end."""
    return (flags & TERMINATED) != 0 or (not bootstrap_at_timeout and (flags & TRUNCATED) != 0)


@kernel
def find_episodes(ring_at: Addresses, walk_at: Addresses) -> int:
    """List the episodes that a batch begins; return how many, or minus the steps needed if they do not fit."""
    ring, walk = unpack(Ring, ring_at), unpack(Walk, walk_at)
    rows, steps = ring.rows, walk.steps
    capacity = rows.shape[0]
    walk.lengths[:] = 0
    # Where the walk is: in the run's own list, or in the episode that begins at `start` of `steps`, from its end.
    place, count, start, own = walk.position[PLACE], walk.position[COUNT], 0, True
    used, found = 0, 0
    for i in range(walk.batch.shape[0]):
        if not walk.walked[i]:
            continue
        row = walk.batch[i]
        fits = place < count and (walk.rows[place] if own else steps[start + count - 1 - place]) == row
        if not fits:
            length = ring.episodes[rows[row % capacity, EPISODE], LENGTH]
            if used + length > steps.shape[0]:
                return -(used + length)
            episode_rows(row, ring_at, steps[used : used + length])
            if steps[used + length - 1] != row:
                place, count = 0, 0
                continue
            walk.lengths[found] = length
            found += 1
            place, count, start, own = 0, length, used, False
            used += length
        place += 1
    return found


@kernel
def episode_targets(
    ring: Ring,
    rule: Backward,
    steps: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    targets: NDArray[np.float64],
) -> None:
    """Compute the targets of an episode, in time order, by EBU's temporary table.

    The table begins as the target network's values of every step's next state. The walk goes from the last step to the
    first: y = reward + discount * table[step, best action]; then the entry of the step before, whose next state is this
    step's state, moves at the action taken here to diffusion * y + (1 - diffusion) * what it was. With a diffusion of 0
    the targets are the one-step ones; with 1 they are the returns of the episode, where no other action is better.
    """
    rows, values, actions = ring.rows, ring.values, viewed(ring.actions, np.int64)
    capacity, count = rows.shape[0], steps.shape[0]
    table = np.empty((count, next_target.shape[1]), np.float64)
    for step in range(count):
        for action in range(table.shape[1]):
            table[step, action] = next_target[step, action]
    for step in range(count - 1, -1, -1):
        slot = steps[step] % capacity
        best = 0
        for action in range(1, table.shape[1]):
            if rule.double:
                if next_online[step, action] > next_online[step, best]:
                    best = action
            elif table[step, action] > table[step, best]:
                best = action
        # Rewards and discounts are those of a batch, which has them in single precision.
        discount = np.float64(np.float32(0.0 if stops(rows[slot, FLAGS], rule.bootstrap) else rule.gamma))
        target = np.float64(np.float32(values[slot, REWARD])) + discount * table[step, best]
        targets[step] = target
        if step:
            taken = actions[slot, 0]
            table[step - 1, taken] = rule.diffusion * target + (1.0 - rule.diffusion) * table[step - 1, taken]


@kernel
def walk_through(
    ring_at: Addresses,
    walk_at: Addresses,
    rule: Backward,
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    known: NDArray[np.floating],
) -> None:
    """Write each walked row's target to `known`, NaN for the others, and which rows are skipped.

    `next_target` and `next_online` are the values of the next states of the steps that `find_episodes` listed.
    """
    walk = unpack(Walk, walk_at)
    position, steps = walk.position, walk.steps
    episode, used = 0, 0
    for i in range(walk.batch.shape[0]):
        known[i] = np.nan
        walk.skipped[i] = False
        if not walk.walked[i]:
            continue
        if not (position[PLACE] < position[COUNT] and walk.rows[position[PLACE]] == walk.batch[i]):
            length = walk.lengths[episode] if episode < walk.lengths.shape[0] else 0
            if length == 0 or steps[used + length - 1] != walk.batch[i]:
                position[PLACE], position[COUNT] = 0, 0
                continue
            targets = np.empty(length, np.float64)
            episode_targets(
                unpack(Ring, ring_at),
                rule,
                steps[used : used + length],
                next_target[used : used + length],
                next_online[used : used + length],
                targets,
            )
            for step in range(length):
                newest_first = length - 1 - step
                walk.rows[newest_first] = steps[used + step]
                walk.targets[newest_first] = targets[step]
                walk.left_out[newest_first] = step < rule.skipped_steps
            position[PLACE], position[COUNT] = 0, length
            used += length
            episode += 1
        known[i] = walk.targets[position[PLACE]]
        walk.skipped[i] = walk.left_out[position[PLACE]]
        position[PLACE] += 1
