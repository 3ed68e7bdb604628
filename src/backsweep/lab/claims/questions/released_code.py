"""Questions about what the paper's released code does differently (D1 to D16 in `backsweep.agent.settings`)."""

from __future__ import annotations

from dataclasses import replace

from backsweep.lab.claims.question import Question, Variant
from backsweep.lab.claims.questions.graph_values import sizes
from backsweep.lab.claims.questions.shared import SCORES, SOKOBAN, variant
from backsweep.lab.claims.rules import Better, Together
from backsweep.lab.seeds import reporting

_LARGE, _SMALL = 1_000_000, 50_000


def _small(name: str) -> str:
    return f"{name}, small buffer"


def _with_buffer(line: Variant, capacity: int) -> Variant:
    # Our ratio and the task's own options, which other questions vary.
    return replace(line, options={"capacity": capacity, "task_options": {}, "ratio": 0.5}, usual=frozenset())


_SHRUNK = ("uer", "per")
_BUFFERS = (
    *(_with_buffer(variant(name), _LARGE) for name in (*_SHRUNK, "ter")),
    *(_with_buffer(variant(name, _small(name)), _SMALL) for name in _SHRUNK),
)

D1 = Question(
    id="D1",
    title="How much of Sokoban's gap is the buffer?",
    question=(
        "In the paper's released code TER keeps a million transitions on Sokoban, and every other method 50,000. Do "
        "the small buffers hold the others back?"
    ),
    claim=(
        "A buffer of 50,000 transitions makes uniform replay and PER worse than one of a million, and so explains a "
        "part of TER's lead."
    ),
    metric=SCORES,
    decided_by=(
        "Holds if both are better with the large buffer than with the small one, at the end and in area, with a p of "
        "at most 0.05; does not hold if one is worse as clearly, or if a difference is shown to be smaller than 0.05. "
        "TER with the large buffer is also shown. Written while the runs on 6x6 with one box were under way, before "
        "their results were seen. EBU and DisCor are left out: EBU was not run, and DisCor's runs did not end in time."
    ),
    rule=Together(tuple(Better(name, (_small(name),), _BUFFERS, SOKOBAN) for name in _SHRUNK)),
    scales=sizes(SOKOBAN, _BUFFERS, laptop_tasks=SOKOBAN[:1], seeds=reporting(5)),
    kind="released code",
)

QUESTIONS = (D1,)
