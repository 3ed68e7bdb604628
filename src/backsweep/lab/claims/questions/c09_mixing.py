"""C9, "How much should be mixed in?"."""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import LAVA_HARD, MINIGRID, SCORES, SOKOBAN, grids, variant
from backsweep.lab.claims.rules import Alike

_SHARES = (0.0, 0.05, 0.1, 0.2, 0.5, 0.7)
_VARIANTS = tuple(variant("ter", f"eta {share:g}", eta=share) for share in _SHARES)

QUESTION = Question(
    id="C9",
    title="How much should be mixed in?",
    question=("Part of each of TER's batches comes from PER. How large should that part be?"),
    claim=(
        "0.1 and 0.2 are best on Sokoban, high shares fail and low ones converge too early; MiniGrid is insensitive."
    ),
    metric=SCORES,
    decided_by=(
        "Reproduced if on MiniGrid no two of the shares 0.1, 0.2, 0.5 and 0.7 differ by more than 0.05 at the end "
        "(every pair's corrected interval within it), not reproduced if one pair's lies wholly outside. Sokoban's "
        "part needs Sokoban runs."
    ),
    rule=Alike(("eta 0.1", "eta 0.2", "eta 0.5", "eta 0.7"), _VARIANTS, MINIGRID),
    scales=grids((*MINIGRID, *SOKOBAN), _VARIANTS, laptop_tasks=(LAVA_HARD, SOKOBAN[2])),
    missing=("Uniform sampling as the mixed-in part is an option (mix_with) and not part of the table of runs."),
)
