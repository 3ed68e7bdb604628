"""The ring of transitions.

A row of the ring holds two observations by number, and its neighbours in its episode:

    rows[slot]    PREVIOUS  NEXT  EPISODE  FLAGS  OBSERVATION  NEXT_OBSERVATION
    values[slot]  REWARD  RETURN (the episode's reward up to and including this row)

PREVIOUS is the slot that was written before in the same episode, -1 for the first step; it is still live if the row is
not its episode's FIRST.

An episode is a chain of rows; it loses its first row when the ring overwrites it:

    episodes[episode]  FIRST  LAST  LENGTH  STATE  POSITION  NUMBER
    live_episodes      the episodes that have rows, in any order; POSITION is an episode's index

A serial number counts rows since the beginning; the row with serial number n is in slot n % capacity.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

from backsweep.jit.array_table import (
    ByteMatrix,
    ByteVector,
    Float64Matrix,
    Float64Vector,
    Int32Matrix,
    Int32Vector,
    Int64Matrix,
    Int64Vector,
    WordMatrix,
    WordVector,
)
from backsweep.jit.compilation import inlined

# Columns of rows.
PREVIOUS, NEXT, EPISODE, FLAGS, OBSERVATION, NEXT_OBSERVATION, ROW_COLUMNS = range(7)
# Columns of values.
REWARD, RETURN, VALUE_COLUMNS = range(3)
# Bits of FLAGS.
TERMINATED = 1
TRUNCATED = 2
STARTS_EPISODE = 4
ENDED = TERMINATED | TRUNCATED
SKIP = 255  # staged flags of a lane that adds nothing
UNSEEN = 32  # the row's successor was never observed: a separate state represents it, see `staging.py`
CONTINUES = 16  # a bit of staged flags: the observation is known to be the lane's last successor, and was not staged
# Columns of episodes.
FIRST, LAST, LENGTH, STATE, POSITION, NUMBER, EPISODE_COLUMNS = range(7)
# Episode states.
RUNNING, HAS_TERMINATED, HAS_TRUNCATED, BROKEN_OFF = range(4)
# Counters of the ring.
TOTAL = 0  # rows ever added: the next serial number
LIVE = 1
EPISODES_HIGH = 2
EPISODES_FREE = 3
EPISODES_LIVE = 4
EPISODES_EVER = 5
EPISODES_BROKEN = 6
FRESH = 7  # of the last add: how many observations were new
CLEARED = 8  # rows below this serial number were removed by a clear
STORE_COUNTERS = 9
# Columns of lanes.
LANE_LAST = 0  # serial number of the lane's last row + 1, or 0
LANE_COLUMNS = 1
# Bundles of a store, in the order of its table.
STAGED, RING, FRAMES, STACKS, STORE_BUNDLES = range(5)
# Bundles that follow in the table of a replay.
GRAPH, KEYS, REPLAY_BUNDLES = range(4, 7)
# And in the table for adding arguments of Python.
FORM = 6
PLACES = 7


class Staged(NamedTuple):
    """The staged transitions of a call of `add`."""

    observations: WordMatrix
    """Observations of all lanes, then their successors, then successors as `add_arguments` keeps them."""
    actions: ByteMatrix
    rewards: Float64Vector
    flags: ByteVector
    fresh: Int32Matrix
    """Out: the staged position and the number of every observation that was not stored before."""
    codes: WordVector
    """Scratch: the hashes of the successors, where observations are no stacks."""
    kept: Int64Vector
    """Of each lane: the serial number + 1 of the row whose successor is kept, 0 for none."""
    numbers: Int64Vector
    """Out: the serial number of each lane's row, -1 for a lane that added nothing."""


class Ring(NamedTuple):
    """The ring of transitions and their episodes."""

    rows: Int32Matrix
    values: Float64Matrix
    actions: ByteMatrix
    episodes: Int64Matrix
    live_episodes: Int32Vector
    lanes: Int64Matrix
    counters: Int64Vector


@inlined
def begin_episode(slot: int, ring: Ring) -> int:
    """Open an episode whose first row is `slot` and return it."""
    episodes, counters = ring.episodes, ring.counters
    if counters[EPISODES_FREE] != 0:
        episode = counters[EPISODES_FREE] - 1
        counters[EPISODES_FREE] = episodes[episode, FIRST]
    else:
        episode = counters[EPISODES_HIGH]
        counters[EPISODES_HIGH] += 1
    episodes[episode, FIRST] = slot
    episodes[episode, LENGTH] = 0
    episodes[episode, STATE] = RUNNING
    episodes[episode, POSITION] = counters[EPISODES_LIVE]
    episodes[episode, NUMBER] = counters[EPISODES_EVER]
    ring.live_episodes[counters[EPISODES_LIVE]] = episode
    counters[EPISODES_LIVE] += 1
    counters[EPISODES_EVER] += 1
    return episode


@inlined
def shorten_episode(slot: int, ring: Ring) -> None:
    """Drop the first row of an episode, which is in `slot`; release an episode without rows."""
    episodes, counters = ring.episodes, ring.counters
    episode = ring.rows[slot, EPISODE]
    episodes[episode, LENGTH] -= 1
    if episodes[episode, LENGTH] > 0:
        episodes[episode, FIRST] = ring.rows[slot, NEXT]
        return
    position = episodes[episode, POSITION]
    counters[EPISODES_LIVE] -= 1
    moved = ring.live_episodes[counters[EPISODES_LIVE]]
    ring.live_episodes[position] = moved
    episodes[moved, POSITION] = position
    episodes[episode, FIRST] = counters[EPISODES_FREE]
    episodes[episode, LAST] = -1
    counters[EPISODES_FREE] = episode + 1


@inlined
def later_slot(slot: int, rows: int, capacity: int) -> int:
    """Return the slot that is written `rows` rows later; a division takes too long here."""
    later = slot + rows
    return later if later < capacity else later % capacity


@inlined
def last_slot(lane: int, slot: int, ring: Ring) -> int:
    """Return where a lane's last row is if it is still there, else -1; the lane's next row goes to `slot`."""
    counters = ring.counters
    serial = ring.lanes[lane, LANE_LAST] - 1
    ago = counters[TOTAL] - serial
    if serial < 0 or ago > counters[LIVE]:
        return -1
    return slot - ago if slot >= ago else slot - ago + ring.rows.shape[0]
