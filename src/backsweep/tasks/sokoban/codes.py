"""The integer codes of the Sokoban kernels.

A room is two grids of one byte per cell: `fixed` has walls, floor and targets, `room` also boxes and the player.
"""

from __future__ import annotations

WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER = range(6)
PLAYER_ON_TARGET = 6  # a colour only: the room says PLAYER and the fixed grid says TARGET
NUM_COLOURS = 7

COLOURS = ((0, 0, 0), (243, 248, 238), (254, 126, 125), (254, 95, 56), (142, 121, 56), (160, 212, 56), (219, 212, 56))

# The package's action numbers: 0 does nothing, 1..4 push, 5..8 move, each up, down, left, right.
NO_OPERATION = 0
FIRST_PUSH = 1
FIRST_MOVE = 5
NUM_DIRECTIONS = 4
ACTION_NAMES = (
    "no operation",
    "push up",
    "push down",
    "push left",
    "push right",
    "move up",
    "move down",
    "move left",
    "move right",
)

# One row of the lane table.
PLAYER_CELL, STEPS, BOXES_ON_TARGET, LANE_COLUMNS = range(4)

STEP_PENALTY = -0.1
BOX_REWARD = 1.0
SOLVED_REWARD = 10.0
