"""C17: TER beside a world model, with the same number of environment steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.goal_rules import SOLVED
from backsweep.lab.claims.groups import FEWEST_SEEDS, final
from backsweep.lab.claims.question import NOT_RUN, Check, Outcome, Table, Variant, Verdict
from backsweep.lab.claims.rules import MARGIN
from backsweep.lab.claims.summary import TrainingRule
from backsweep.lab.claims.world_model_runs import WORLD_MODEL, Learned, Place, places
from backsweep.lab.stats import Interval, area_under, bootstrap, median_interval, paired_difference, steps_to_keep
from backsweep.tasks import find_task

CLAIMED_TASKS = 4  # the claim is about four tasks, and about three of them


@dataclass(frozen=True)
class AsHighAsWorldModel(TrainingRule):
    """The first variant ends as high as DreamerV2 on three tasks of four; the other variants are shown."""

    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    share: float = 0.75
    """Of the tasks that were run, those where it must hold."""
    far: float = 0.5
    """Share of the paper's budget below which a task that is not solved yet is open."""
    whole_runs: bool = False
    """The runs are cut to the steps that DreamerV2 made, so tables of whole runs are not about the claim."""
    seed: int = 0

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.variants[0].label,)

    def places(self, evidence: Evidence) -> list[Place]:
        """Return the tasks that can be compared."""
        found: list[Place] = evidence.once(
            "places of C17", lambda evidence: places(evidence, self.variants, self.tasks)
        )
        return found

    def decide(self, evidence: Evidence) -> Verdict:
        """Reproduced if it holds on three quarters of the tasks that were run, not if that cannot be reached."""
        found = self.places(evidence)
        if not found:
            return NOT_RUN
        leads = {place.task: self._lead(place) for place in found}
        checks = [self._check(place, leads[place.task]) for place in found]
        needed = math.ceil(self.share * len(checks))
        outcome: Outcome = "inconclusive"
        if sum(check.holds is True for check in checks) >= needed:
            outcome = "reproduced"
        elif sum(check.holds is not False for check in checks) < needed:
            outcome = "not reproduced"
        worst = min(leads.values(), key=lambda lead: lead.estimate)
        return Verdict(
            outcome,
            self._summary(found),
            tuple(checks),
            [entry for place in found for entry in self._entries(place)],
            sum(len(runs) for place in found for runs in place.runs.values()),
            about=f"{len(found)} of {CLAIMED_TASKS} tasks" if len(found) < CLAIMED_TASKS else "",
            short=self._short(found),
            number=f"{worst} {title_of(self.compared[0])} over {WORLD_MODEL}",
        )

    def _lead(self, place: Place) -> Interval:
        """Return how far the first variant is above DreamerV2 at the end."""
        ours, theirs = (_column(place.runs[label], _final_score) for label in (self.compared[0], WORLD_MODEL))
        generator = named_generator(self.seed, "world model", place.task)
        return paired_difference(ours, theirs, generator=generator)[0]

    def _check(self, place: Place, lead: Interval) -> Check:
        """Return whether the first variant is at most the margin lower; open with few seeds, or long before the end."""
        last, budget = int(place.steps[-1]), find_task(place.task).training.budget
        text = f"{title_of(self.compared[0])} ends as high as {WORLD_MODEL} on {place.task}"
        told = f"{lead} after {last:,} steps, {_seeds(len(place.seeds))}"
        if len(place.seeds) < FEWEST_SEEDS:
            return Check(text, f"{told}; fewer than {FEWEST_SEEDS} decide nothing", None)
        both = [*place.runs[self.compared[0]], *place.runs[WORLD_MODEL]]
        if last < self.far * budget and not all(_solves(run)[1] for run in both):
            early = f"the paper trained {budget:,} steps, and not every run has solved it: too early to tell"
            return Check(text, f"{told}; {early}", None)
        return Check(text, told, lead.within(-MARGIN, math.inf))

    def _entries(self, place: Place) -> Table:
        """Return the numbers of each method on a task."""
        entries: Table = []
        for label, runs in place.runs.items():
            generator = named_generator(self.seed, "world model", place.task, label)
            times, happened = zip(*map(_solves, runs), strict=True)
            minutes = float(np.median([run.minutes[-1] for run in runs]))
            entry: dict[str, Any] = {
                "task": place.task,
                "method": label,
                "steps": int(place.steps[-1]),
                "seeds": len(runs),
                "score at the end": bootstrap(_column(runs, _final_score), generator=generator),
                "goal reached at the end": bootstrap(_column(runs, _final_success), generator=generator),
                "area under the score": bootstrap(_column(runs, _area), generator=generator),
                f"runs that solve {SOLVED:.0%} for good": f"{sum(happened)} of {len(runs)}",
                "median steps to that": median_interval(times, happened, generator=generator),
                "minutes a run": None if math.isnan(minutes) else round(minutes, 1),
            }
            entries.append(entry)
        return entries

    def _short(self, found: list[Place]) -> str:
        """Return the mean share of episodes that each method solves at the end, in words."""
        told = []
        for place in found:
            shares = [
                f"{title_of(label)} {float(_column(runs, _final_success).mean()):.0%}"
                for label, runs in place.runs.items()
            ]
            told.append(f"{', '.join(shares)} on {place.task} after {place.steps[-1]:,.0f} steps")
        return f"Episodes that reach the goal: {'; '.join(told)}."

    def _summary(self, found: list[Place]) -> str:
        """Return what was run, and what a run of DreamerV2 took."""
        counts = {place.task: f"{_seeds(len(place.seeds))}, {place.steps[-1]:,.0f} steps" for place in found}
        told = "; ".join(f"{task}: {words}" for task, words in counts.items())
        took = [float(run.minutes[-1]) for place in found for run in place.runs[WORLD_MODEL]]
        return (
            f"{told}. All methods are compared at the same environment steps and with the same seeds, ours with our "
            f"settings. A run of {WORLD_MODEL} took {np.median(took):.0f} minutes up to there (median, "
            "evaluations included). Its scores are those of played episodes, the others' are exact."
        )


def _seeds(count: int) -> str:
    return "1 paired seed" if count == 1 else f"{count} paired seeds"


def _final_score(run: Learned) -> float:
    return final(run.score)


def _final_success(run: Learned) -> float:
    return final(run.success)


def _area(run: Learned) -> float:
    return area_under(run.steps, run.score)


def _solves(run: Learned) -> tuple[float, bool]:
    return steps_to_keep(run.steps, run.success, SOLVED)


def _column(runs: list[Learned], measure: Any) -> NDArray[np.float64]:
    """Return a number of each run, as the scores (runs, tasks) of one task."""
    return np.array([[measure(run)] for run in runs])
