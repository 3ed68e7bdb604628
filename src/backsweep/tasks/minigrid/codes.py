"""The integer codes of the MiniGrid kernels: cells, directions, actions, table columns.

A cell is one byte. Coloured things take six codes in a row, one per colour:

    0 empty   1 wall   2 goal   3 lava   4..9 key   10..15 open door   16..21 closed door   22..27 locked door
"""

from __future__ import annotations

RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)
NUM_COLOURS = 6

EMPTY, WALL, GOAL, LAVA, KEY = range(5)
DOOR_OPEN = KEY + NUM_COLOURS
DOOR_CLOSED = DOOR_OPEN + NUM_COLOURS
DOOR_LOCKED = DOOR_CLOSED + NUM_COLOURS
NUM_CODES = DOOR_LOCKED + NUM_COLOURS

# Each code has five tiles: without the agent, and with it in each direction.
TILES_PER_CODE = 5

RIGHT, DOWN, LEFT, UP = range(4)

TURN_LEFT, TURN_RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
ACTION_NAMES = ("left", "right", "forward", "pickup", "drop", "toggle", "done")

# One row of the lane table: everything about a lane but its cells.
X = 0
Y = 1
DIRECTION = 2
CARRYING = 3  # cell code of the thing carried, EMPTY if none
STEPS = 4
DOOR_A = 5  # cell index of the only door, or of the red one; -1 if none
DOOR_B = 6  # cell index of the blue door; -1 if none
LANE_COLUMNS = 7

# The rules vector, which is the same for all lanes of a task.
FAMILY = 0
WIDTH = 1
HEIGHT = 2
MAX_STEPS = 3
CROSSINGS = 4
OBSTACLE = 5  # cell code of the rivers
REWARD_FORM = 6
WRONG_DOOR_COSTS = 7  # whether opening the blue door first costs max_steps (released) or 1 (paper)
GOAL_TERMINATES = 8
RULE_COLUMNS = 9

FAMILY_DOORKEY, FAMILY_UNLOCK, FAMILY_REDBLUEDOORS, FAMILY_CROSSING = range(4)

REWARD_PAPER, REWARD_PACKAGE = range(2)

# The outcome of an action.
NOTHING, SUCCESS, FAILURE = range(3)
