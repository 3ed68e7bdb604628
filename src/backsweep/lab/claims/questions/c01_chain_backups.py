"""C1: Backups to solve a chain."""

from __future__ import annotations

from backsweep.lab.claims.chain_rules import ThirtyBackups
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import TABULAR

QUESTION = Question(
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
