"""C13, "What if reaching the goal does not end the episode?"."""

from __future__ import annotations

from typing import Any

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, NAMES, SCORES, SIMPLE_HARD, grids, variant
from backsweep.lab.claims.rules import Better

_OPTIONS: dict[str, Any] = {"task_options": {"goals_terminate": False}, "exact": False}
_VARIANTS = tuple(variant(name, **_OPTIONS) for name in (*NAMES, "ter-pseudo"))
_TASKS = (SIMPLE_HARD, LAVA_HARD)

QUESTION = Question(
    id="C13",
    title="What if reaching the goal does not end the episode?",
    question=(
        "Sweeps start where episodes end. If the goal does not end them, can states with a high accumulated reward "
        "take that place?"
    ),
    claim=(
        "Pseudo-terminal roots (Boltzmann over average accumulated reward, kappa 0.01) work where goals do not "
        "terminate."
    ),
    metric=SCORES,
    decided_by=(
        "Reproduced if TER from pseudo-terminals is ahead of UER, PER, EBU and DisCor with Holm-corrected p of at "
        "most 0.05 on the two tasks whose goals do not terminate; not reproduced if it is behind one as clearly or a "
        "difference is shown to be smaller than 0.05."
    ),
    rule=Better("ter-pseudo", NAMES, _VARIANTS, _TASKS),
    scales=grids(_TASKS, _VARIANTS),
)
