"""C2: How fast values become right on a chain."""

from __future__ import annotations

from backsweep.lab.claims.chain_rules import FasterValues
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import TABULAR

QUESTION = Question(
    id="C2",
    title="How fast values become right on a chain",
    question=(
        "While the same agents learn: how far are their values from the exact ones, and whose error falls fastest?"
    ),
    claim=("The value error against the exact Q* falls faster under TER than under every baseline."),
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
