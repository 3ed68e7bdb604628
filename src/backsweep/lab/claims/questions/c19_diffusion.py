"""C19, "Does EBU's diffusion factor matter?"."""

from __future__ import annotations

from backsweep.lab.claims.chain_rules import DiffusionMatters
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import TABULAR

QUESTION = Question(
    id="C19",
    title="Does EBU's diffusion factor matter?",
    question=(
        "EBU has one knob, how strongly a step's value flows into the step before. Does its setting change how many "
        "updates the chain needs?"
    ),
    claim=("EBU's beta hardly matters."),
    metric=("Mean backups to solve the chain, limited to the budget, as a ratio to beta 0.5; data sets in pairs."),
    decided_by=(
        "Tabular setting, beta in {0, 0.25, 0.5, 0.75, 1}, batches of 1, 16 and 64, both starts, target copied every "
        "0 and 20 backups. Reproduced if every ratio's 95% interval lies within 0.8 to 1.25, not reproduced if one "
        "lies wholly outside, else inconclusive."
    ),
    rule=DiffusionMatters(),
    scales=TABULAR,
)
