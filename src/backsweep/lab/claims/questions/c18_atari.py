"""C18, "Atari: does it hurt?"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backsweep.lab.claims.evidence import TrainedRun
from backsweep.lab.claims.groups import final_mean_return
from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions.shared import PER, TER, UER, grids
from backsweep.lab.claims.rules import Alike

# Returns of random play and of a human player, as Mnih et al. (2015) list them.
_RANDOM_AND_HUMAN = {
    "atari/pong": (-20.7, 9.3),
    "atari/kangaroo": (52.0, 3035.0),
    "atari/venture": (0.0, 1188.0),
    "atari/freeway": (0.0, 29.6),
}
_TASKS = tuple(_RANDOM_AND_HUMAN)
# The paper does not say how long it trained. Episodes are long here, and frames are large.
_LENGTH: dict[str, Any] = {"steps": 2_000_000, "capacity": 250_000, "evaluation_episodes": 10}
_SMALL = {"convolutions": ((8, 8, 4), (8, 4, 2)), "steps": 300, "capacity": 300, "evaluation_episodes": 1}
_SCALES = grids(_TASKS, (TER, UER, PER), laptop_tasks=_TASKS[:1], smoke_options=_SMALL)


def human_score(run: TrainedRun) -> float:
    """Return the mean return at the end on a scale from random play, 0, to a human player, 1."""
    low, high = _RANDOM_AND_HUMAN[run.task]
    return (final_mean_return(run) - low) / (high - low)


QUESTION = Question(
    id="C18",
    title="Atari: does it hurt?",
    question=("In Atari games states hardly repeat. Is TER at least no worse there?"),
    claim=("On Pong, Kangaroo, Venture and Freeway TER is about equal to the baselines."),
    metric=(
        "Mean return at the end of 2,000,000 steps on a scale from random play, 0, to a human player, 1 (Mnih et al., "
        "2015); interquartile mean over games and paired seeds. All replays hold 250,000 transitions."
    ),
    decided_by=(
        "Reproduced if no two of TER, UER and PER differ by more than 0.05 (every pair's corrected interval within "
        "it); not reproduced if one interval lies wholly outside. Until its first run, the rule was 5 points of return "
        "whatever the game: an eighth of Pong's range, and less than anything that Kangaroo pays."
    ),
    rule=Alike(("ter", "uer", "per"), (TER, UER, PER), _TASKS, measure=("human-normalised return", human_score)),
    scales={
        scale: replace(grid, options={**grid.options, **_LENGTH}) if scale == "paper" and grid is not None else grid
        for scale, grid in _SCALES.items()
    },
)
