"""Bundles, columns and codes of the tables of a fleet's kernels; `turn_kernels.py` describes them."""

from __future__ import annotations

from typing import NamedTuple

from backsweep.jit.array_table import (
    BoolVector,
    ByteVector,
    Float32Vector,
    Float64Matrix,
    Float64Vector,
    Int64Matrix,
    Int64Vector,
    WordMatrix,
    WordVector,
)
from backsweep.store.ring_kernels import REPLAY_BUNDLES
from backsweep.tasks.lanes_kernels import TASK_BUNDLES

# Bundles of a run, in the order of its table: the replay's, then these.
TASK = REPLAY_BUNDLES  # the task's own table
RUN = TASK + TASK_BUNDLES
BATCH = RUN + 1
MODEL = BATCH + 1  # of graph values; empty for runs without
EXPERIENCE = MODEL + 1
PARTS = EXPERIENCE + 1  # two for each part of the sampler: the part, and the arrays of its kind
BUNDLES_PER_PART = 2


class RunArrays(NamedTuple):
    """The run's own data."""

    ints: Int64Vector
    floats: Float64Vector
    explorer: WordVector
    """Words of its PCG64 stream."""
    shares: Int64Vector
    """How many rows of a batch each part of the sampler gives."""
    log: Float64Matrix
    """Returns and lengths of the episodes that ended since the last `hand_back`."""
    action: Int64Vector
    resting: BoolVector
    chosen: BoolVector
    observation: ByteVector
    """The run's current observation, of any dtype, as bytes."""


class Batch(NamedTuple):
    """What a turn exchanges with the learner."""

    best: Int64Vector
    """In: the greedy action."""
    current: Int64Vector
    """Out: the device row of what the run sees now."""
    row: Int64Vector
    """Out, as are all that follow but the last: serial numbers."""
    device_rows: Int64Matrix
    """The device rows of observations and of their successors."""
    action: Int64Vector
    reward: Float32Vector
    discount: Float32Vector
    weight: Float32Vector
    td_error: Float64Vector
    """In: the TD errors of the last batch."""


class Part(NamedTuple):
    """One part of a sampler."""

    ints: Int64Vector
    floats: Float64Vector
    generators: WordMatrix
    window: Int64Vector
    """SWEEP: rows in the shuffling window."""


# What a turn does; values are added.
APPLY = 1  # update priorities with the TD errors of the last batch
STEP = 2  # act, step the task, add the transition
DRAW = 4  # draw a batch

# Families of tasks.
CHAIN = 0
MINIGRID = 1
SOKOBAN = 2

# Kinds of samplers.
UNIFORM = 0
PRIORITIZED = 1
SWEEP = 2
EPISODES = 3
# Whole numbers of a part of a sampler.
PART_KIND = 0
PART_FLAG = 1  # PRIORITIZED: stratified; EPISODES: timeouts are drawn
PART_BETA_ROWS = 2  # PRIORITIZED: rows over which beta rises, 0 if it does not
PART_CURSOR = 2  # EPISODES: the next row to give
PART_RUNNING = 3  # EPISODES: running episodes are drawn
PART_SHUFFLE = 2  # SWEEP: size of the window
PART_HELD = 3  # SWEEP: rows in it
PART_INTS = 4
# Numbers of a part of a sampler.
PART_BETA = 0
PART_FINAL_BETA = 1
PART_ALPHA = 2
PART_EPSILON = 3
PART_CLIP = 4
PART_LARGEST = 5
PART_FLOATS = 6
# Generators of a part of a sampler.
PART_GENERATOR = 0
PART_SHUFFLE_GENERATOR = 1
PART_GENERATORS = 2

# Whole numbers of a run.
RUN_FAMILY = 0
RUN_ACTIONS = 1  # how many
RUN_BYTES = 2  # of an observation
RUN_KEY = 3  # how observations become keys, see `store.ingest`
RUN_PARTS = 4
RUN_FIRST_ROW = 5  # where the run's observations begin on the device
RUN_MOST_ROWS = 6  # how many it may have there; one more row is for first observations
RUN_BOOTSTRAP = 7  # whether values after a time limit count
RUN_NEW = 8  # out: observations that the last step saw for the first time
RUN_BEGAN = 9  # out: whether the last step ended an episode, so that another has begun
RUN_EPISODES = 10  # in and out: episodes ended so far
RUN_LOGGED = 11  # out: entries in the log of ended episodes
RUN_STATE = 12  # see below
RUN_FAILED_AT = 13  # step of the failure
RUN_START = 14  # the number of the episode's first observation if it is stored already, else -1
RUN_N_STEP = 15  # steps that are folded into a transition
RUN_EXPLORES = 16  # whether random actions depend on the graph, see `planning.exploration_kernels`
RUN_PLANS = 17  # whether it has graph values
RUN_INTS = 18
# Numbers of a run.
RUN_DISCOUNT = 0
RUN_RETURN = 1  # of the running episode
RUN_LENGTH = 2
RUN_FLOATS = 3
# States of a run.
GOING = 0
NOT_FINITE = 1  # a TD error is not a number
NO_LEVEL = 2  # the task found no level
DEVICE_FULL = 3  # more distinct observations than the device has rows for
