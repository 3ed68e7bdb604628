"""C18, "Atari: does it hurt?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import PER, TER, UER, grids
from backsweep.lab.claims.rules import Alike

_TASKS = ("atari/pong", "atari/kangaroo", "atari/venture", "atari/freeway")
_SMALL = {"convolutions": ((8, 8, 4), (8, 4, 2)), "steps": 300, "capacity": 300, "evaluation_episodes": 1}

QUESTION = Question(
    id="C18",
    title="Atari: does it hurt?",
    question=("In Atari games states hardly repeat. Is TER at least no worse there?"),
    claim=("On Pong, Kangaroo, Venture and Freeway TER is about equal to the baselines."),
    metric=("Mean return at the end, games one by one; paired seeds."),
    decided_by=(
        "Reproduced if TER and each of UER and PER differ by no more than 5 points of return (interval within it); "
        "not reproduced if one interval lies wholly outside."
    ),
    rule=Alike(("ter", "uer", "per"), (TER, UER, PER), _TASKS, margin=5.0),
    variants=(TER, UER, PER),
    scales=grids(_TASKS, (TER, UER, PER), laptop_tasks=_TASKS[:1], smoke_options=_SMALL),
)
