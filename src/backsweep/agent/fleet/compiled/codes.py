"""Columns and codes of the tables that the lock-step kernels work on; `turn_kernels.py` has the picture."""

from __future__ import annotations

# What a turn does, added up.
APPLY = 1  # take the TD errors of the last batch to the priorities
STEP = 2  # act, move the task, remember
DRAW = 4  # draw a batch

# Families of tasks.
CHAIN = 0
MINIGRID = 1
SOKOBAN = 2
# Arrays of a task: those that all families have, then the family's own from TASK_OWN on.
TASK_ACTION = 0
TASK_RESTING = 1
TASK_CHOSEN = 2
TASK_STREAMS = 3
TASK_REWARDS = 4
TASK_TERMINATED = 5
TASK_TRUNCATED = 6
TASK_OBSERVATION = 7  # of any dtype, taken as bytes
TASK_OWN = 8

# Kinds of samplers.
UNIFORM = 0
PRIORITIZED = 1
SWEEP = 2
EPISODES = 3
# Whole numbers of a part of a sampler.
PART_KIND = 0
PART_FLAG = 1  # PRIORITIZED: stratified; EPISODES: timeouts are drawn; SWEEP: pseudo-terminal roots
PART_BETA_ROWS = 2  # PRIORITIZED: rows over which beta rises, 0 if it does not
PART_CURSOR = 2  # EPISODES: the next row to give
PART_RUNNING = 3  # EPISODES: running episodes are drawn
PART_ROOTS = 2  # SWEEP
PART_PREDECESSORS = 3
PART_SEPARATE = 4
PART_BY_VISITS = 5
PART_STITCH = 6
PART_SHUFFLE = 7
PART_HELD = 8
PART_INTS = 9
# Numbers of a part of a sampler.
PART_BETA = 0
PART_FINAL_BETA = 1
PART_ALPHA = 2
PART_EPSILON = 3
PART_CLIP = 4
PART_LARGEST = 5
PART_KAPPA = 0
PART_FLOATS = 6
# Arrays of a part of a sampler.
TREE_LEVELS = 0
TREE_SUMS = 1
TREE_MINIMA = 2
SWEEP_RANDOM = 0
SWEEP_QUEUE = 1
SWEEP_VISITED = 2
SWEEP_PENDING = 3
SWEEP_ROOTS = 4
SWEEP_COUNTERS = 5
SWEEP_WINDOW = 6
PART_ARRAYS = 7
# Generators of a part of a sampler.
PART_GENERATOR = 0
PART_SHUFFLE_GENERATOR = 1
PART_GENERATORS = 2

# Whole numbers of a lane.
LANE_FAMILY = 0
LANE_ACTIONS = 1  # how many
LANE_BYTES = 2  # of an observation
LANE_KEY = 3  # how observations become keys, see `store.ingest`
LANE_PARTS = 4
LANE_FIRST_ROW = 5  # where the lane's observations begin in the bank
LANE_MOST_ROWS = 6  # how many it may have there; the row behind them is for first observations
LANE_BOOTSTRAP = 7  # whether values after a time limit count
LANE_NEW = 8  # out: observations that the last step saw for the first time
LANE_BEGAN = 9  # out: whether the last step ended an episode, so that another has begun
LANE_EPISODES = 10  # in and out: episodes ended so far
LANE_LOGGED = 11  # out: entries in the log of ended episodes
LANE_STATE = 12  # see below
LANE_FAILED_AT = 13  # step of the failure
LANE_START = 14  # the number of the episode's first observation if it is stored already, else -1
LANE_INTS = 15
# Numbers of a lane.
LANE_DISCOUNT = 0
LANE_RETURN = 1  # of the running episode
LANE_LENGTH = 2
LANE_FLOATS = 3
# States of a lane.
GOING = 0
NOT_FINITE = 1  # a TD error is not a number
NO_LEVEL = 2  # the task found no level
BANK_FULL = 3  # more distinct observations than the bank has rows for

# Exploration's numbers.
EPSILON_START = 0
EPSILON_END = 1
EPSILON_STEPS = 2
EPSILON_RANDOM_STEPS = 3
EPSILON_NUMBERS = 4
