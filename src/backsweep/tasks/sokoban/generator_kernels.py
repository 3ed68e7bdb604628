"""Generates Sokoban rooms: carve, place, play backwards, keep the hardest position.

Reverse play is a depth-first search over (player, boxes, which boxes have been pulled), kept on an explicit stack:

    depth          0        1        2      ...
    players        cell     cell     cell
    boxes          cells    cells    cells          one column per box, in the order of the targets
    pulled         bits     bits     bits           bit b set once box b has been pulled
    pulls          count    count    count          pulls on the path so far
    next_action    0..8     0..8     0..8           the first one not tried yet
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Table, borrow, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.jit.random_streams_kernels import draw_below, draw_unit
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of
from backsweep.tasks.sokoban import codes
from backsweep.tasks.sokoban.moves_kernels import (
    ABSENT,
    HEIGHT,
    MOST_TRIES,
    NUM_BOXES,
    SEARCHES,
    WIDTH,
    Rooms,
    Searches,
    add_if_new,
    clear_set,
    copy_into,
    draw_lanes,
    offset_of,
    step_lanes,
    write_key,
)

TURN_CHANCE = 0.35
NUM_MASKS = 5
DEEPEST = 298  # depth of the last position that is searched; the solved one has depth 0
MOST_STATES = 300_000
NUM_ACTIONS = 8  # pull up, down, left, right, then move up, down, left, right


@kernel
def stamp(fixed: NDArray[np.uint8], cell: int, width: int, mask: int) -> None:
    """Turn the cell and two or three neighbours into floor.

    mask   0 left and right   1 above and below   2 left and below   3 left, below and below-left   4 right and below
    """
    fixed[cell] = codes.FLOOR
    if mask == 0 or mask == 2 or mask == 3:
        fixed[cell - 1] = codes.FLOOR
    if mask == 0 or mask == 4:
        fixed[cell + 1] = codes.FLOOR
    if mask == 1:
        fixed[cell - width] = codes.FLOOR
    if mask >= 1:
        fixed[cell + width] = codes.FLOOR
    if mask == 3:
        fixed[cell + width - 1] = codes.FLOOR


@kernel
def carve(fixed: NDArray[np.uint8], height: int, width: int, stream: NDArray[np.uint64]) -> None:
    """Carve floor along a random walk through solid wall; the border stays wall."""
    fixed[:] = codes.WALL
    direction = draw_below(stream, codes.NUM_DIRECTIONS)
    row = 1 + draw_below(stream, height - 1)
    column = 1 + draw_below(stream, width - 1)
    for _ in range(int(1.7 * (height + width))):
        if draw_unit(stream) < TURN_CHANCE:
            direction = draw_below(stream, codes.NUM_DIRECTIONS)
        if direction == 0:
            row -= 1
        elif direction == 1:
            row += 1
        elif direction == 2:
            column -= 1
        else:
            column += 1
        row = min(max(row, 1), height - 2)
        column = min(max(column, 1), width - 2)
        stamp(fixed, row * width + column, width, draw_below(stream, NUM_MASKS))
    for column in range(width):
        fixed[column] = codes.WALL
        fixed[(height - 1) * width + column] = codes.WALL
    for row in range(height):
        fixed[row * width] = codes.WALL
        fixed[row * width + width - 1] = codes.WALL


@kernel
def draw_floor_cell(fixed: NDArray[np.uint8], taken: int, count: int, stream: NDArray[np.uint64]) -> int:
    """Return one of the `count` plain floor cells other than `taken`, uniformly."""
    left = draw_below(stream, count)
    for cell in range(fixed.size):
        if fixed[cell] == codes.FLOOR and cell != taken:
            if left == 0:
                return cell
            left -= 1
    return ABSENT


@kernel
def place_targets(fixed: NDArray[np.uint8], num_boxes: int, stream: NDArray[np.uint64]) -> int:
    """Choose the player's cell, then turn floor into targets; return the player's cell, ABSENT without enough floor."""
    floor = 0
    for cell in range(fixed.size):
        floor += int(fixed[cell] == codes.FLOOR)
    if floor <= num_boxes + 1:
        return ABSENT
    player = draw_floor_cell(fixed, ABSENT, floor, stream)
    for number in range(num_boxes):
        fixed[draw_floor_cell(fixed, player, floor - 1 - number, stream)] = codes.TARGET
    return player


@kernel
def box_at(boxes: NDArray[np.int64], cell: int) -> int:
    """Return the number of the box on a cell, or ABSENT."""
    for box in range(boxes.size):
        if boxes[box] == cell:
            return box
    return ABSENT


@kernel
def score_of(
    fixed: NDArray[np.uint8], targets: NDArray[np.int64], boxes: NDArray[np.int64], player: int, pulls: int, width: int
) -> int:
    """Return pulls times the boxes' total distance from their targets, 0 if anything is on a target."""
    distance = 0
    if fixed[player] == codes.TARGET:
        return 0
    for box in range(boxes.size):
        if fixed[boxes[box]] == codes.TARGET:
            return 0
        distance += abs(boxes[box] // width - targets[box] // width)
        distance += abs(boxes[box] % width - targets[box] % width)
    return pulls * distance


@kernel
def play_backwards(
    fixed: NDArray[np.uint8],
    player: int,
    width: int,
    best_boxes: NDArray[np.int64],
    keys: NDArray[np.int32],
    slots: NDArray[np.int32],
    table: NDArray[np.int32],
) -> tuple[int, int]:
    """Search from the solved position; write the best boxes and return (best score, the player's cell there).

    `keys`, `slots` and `table` are an empty set (see `add_if_new`) and are left empty.
    """
    num_boxes = best_boxes.size
    targets = np.zeros(num_boxes, dtype=np.int64)
    found = 0
    for cell in range(fixed.size):
        if fixed[cell] == codes.TARGET:
            targets[found] = cell
            found += 1
    players = np.zeros(DEEPEST + 2, dtype=np.int64)
    boxes = np.zeros((DEEPEST + 2, num_boxes), dtype=np.int64)
    pulled = np.zeros(DEEPEST + 2, dtype=np.int64)
    pulls = np.zeros(DEEPEST + 2, dtype=np.int64)
    next_action = np.zeros(DEEPEST + 2, dtype=np.int64)
    key = np.zeros(num_boxes + 1, dtype=np.int32)
    things = np.zeros(num_boxes, dtype=np.int64)
    players[0] = player
    copy_into(boxes[0], targets)
    copy_into(best_boxes, targets)
    best_player = player
    best_score = 0
    for box in range(num_boxes):
        things[box] = 2 * targets[box]
    write_key(key, player, things)
    add_if_new(key, 0, keys, slots, table)
    count = 1
    depth = 0
    while depth >= 0:
        if next_action[depth] == NUM_ACTIONS or count >= keys.shape[0]:
            depth -= 1
            continue
        action = next_action[depth]
        next_action[depth] += 1
        offset = offset_of(action % codes.NUM_DIRECTIONS, width)
        here = players[depth]
        there = here + offset
        if depth == DEEPEST or fixed[there] == codes.WALL or box_at(boxes[depth], there) != ABSENT:
            continue
        deeper = depth + 1
        players[deeper] = there
        copy_into(boxes[deeper], boxes[depth])
        pulled[deeper] = pulled[depth]
        pulls[deeper] = pulls[depth]
        if action < codes.NUM_DIRECTIONS:
            box = box_at(boxes[depth], here - offset)
            if box != ABSENT:
                boxes[deeper, box] = here
                pulled[deeper] |= 1 << box
                pulls[deeper] += 1
        for box in range(num_boxes):
            things[box] = 2 * boxes[deeper, box] + ((pulled[deeper] >> box) & 1)
        write_key(key, there, things)
        if not add_if_new(key, count, keys, slots, table):
            continue
        count += 1
        score = score_of(fixed, targets, boxes[deeper], there, pulls[deeper], width)
        if score > best_score:
            best_score = score
            best_player = there
            copy_into(best_boxes, boxes[deeper])
        next_action[deeper] = 0
        depth = deeper
    clear_set(count, slots, table)
    return best_score, best_player


@kernel
def draw_rooms(
    first: int,
    last: int,
    chosen: NDArray[np.bool_],
    streams: NDArray[np.uint64],
    rooms: Rooms,
    searches: Searches,
    search: int,
) -> int:
    """Draw a new room for every chosen lane of first..last-1; return a lane that found none in time, or ABSENT.

    Tries are independent and the first with a positive score is taken. (The original restarts after four tries, or when
    there is too little floor, which gives the same distribution.) `search` is the index of this thread's set.
    """
    settings, fixed = rooms.settings, rooms.fixed
    keys, slots, table = searches.keys[search], searches.slots[search], searches.table[search]
    num_boxes, width = settings[NUM_BOXES], settings[WIDTH]
    boxes = np.zeros(num_boxes, dtype=np.int64)
    for lane in range(first, last):
        if not chosen[lane]:
            continue
        stream = streams[lane : lane + 1]
        score, player = 0, ABSENT
        for _ in range(settings[MOST_TRIES]):
            carve(fixed[lane], settings[HEIGHT], width, stream)
            player = place_targets(fixed[lane], num_boxes, stream)
            if player != ABSENT:
                score, player = play_backwards(fixed[lane], player, width, boxes, keys, slots, table)
                if score > 0:
                    break
        if score == 0:
            return lane
        copy_into(rooms.rooms[lane], fixed[lane])
        rooms.rooms[lane, player] = codes.PLAYER
        for box in range(num_boxes):
            rooms.rooms[lane, boxes[box]] = codes.BOX
        rooms.lanes[lane, codes.PLAYER_CELL] = player
        rooms.lanes[lane, codes.STEPS] = 0
        rooms.lanes[lane, codes.BOXES_ON_TARGET] = 0
    return ABSENT


@kernel
def begin_episodes(chosen: NDArray[np.bool_], streams: NDArray[np.uint64], task: Table) -> int:
    """Draw a new room for every chosen lane and paint it; return a lane that found none, or ABSENT."""
    rooms, chosen = unpack(Rooms, task[OWN]), borrow(chosen)
    lost = draw_rooms(0, chosen.size, chosen, borrow(streams), rooms, unpack(Searches, task[SEARCHES]), 0)
    if lost == ABSENT:
        draw_lanes(0, chosen.size, chosen, rooms)
    return lost


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, rooms = unpack(Outcomes, task[OUTCOMES]), unpack(Rooms, task[OWN])
    searches, arrays = unpack(Searches, task[SEARCHES]), unpack(Advance, addresses)
    first, last = range_of(share, shares, arrays.actions.size)
    if moving:
        step_lanes(first, last, arrays.actions, arrays.resting, outcomes, rooms)
    for lane in range(first, last):
        rooms.lost[lane] = False
        if end_episode(lane, moving, beginning, arrays, outcomes):
            # One at a time: a lane that finds no room must not stop the others.
            lost = draw_rooms(lane, lane + 1, arrays.ended, outcomes.streams, rooms, searches, share)
            rooms.lost[lane] = lost != ABSENT
    if beginning:
        draw_lanes(first, last, arrays.ended, rooms)


@threaded
def advance_lanes(shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance all lanes, in shares for the threads (see `Lanes.advance`)."""
    for share in prange(shares):
        advance_share(share, shares, moving, beginning, addresses, task)
