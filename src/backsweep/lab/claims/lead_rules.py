"""The second half of C4: whether TER's lead grows with the size of the task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import TrainedRun
from backsweep.lab.claims.groups import Groups, Measure, area, scores
from backsweep.lab.claims.question import Check, Verdict
from backsweep.lab.claims.rules import LEVEL
from backsweep.lab.claims.summary import Comparison
from backsweep.lab.stats import Interval, around, chance_of_order, interquartile_mean, rank_correlation
from backsweep.tasks import find_task

TITLE = "Lead, size and graph"
FEWEST_TASKS = 4  # through fewer points every order is a trend
REPEATS = 2_000


@dataclass(frozen=True)
class Lead:
    """The lead of one variant over the mean of the others on a task, with the task's size and its graph."""

    task: str
    size: int
    """Ways to place the player and the boxes on the map: larger maps and more boxes have more."""
    values: NDArray[np.float64]
    """By paired seed."""
    interval: Interval
    vertices: float
    """States in the graph at the end, the median over seeds; NaN where no graph was recorded."""
    edges_per_vertex: float
    rows_per_vertex: float
    """Stored transitions per state: how often a state was visited."""


@dataclass(frozen=True)
class GrowsWithSize(Comparison):
    """One variant's lead over the others grows with the size of the map and the number of boxes."""

    measure: tuple[str, Measure] = ("area under the curve", area)

    def judge(self, groups: Groups) -> Verdict:
        """Holds if the rank correlation of lead and size is above 0, fails if below.

        Above 0 means: the bootstrap interval over seeds is, and the exact p-value over orders of the tasks is at most
        0.05; four tasks need a perfect order. The density of the measured graphs is shown but does not decide, because
        the claim does not mention it.
        """
        found = self.leads(groups)
        table = [
            {
                "task": lead.task,
                "placements": lead.size,
                "states seen": lead.vertices,
                "edges per state": lead.edges_per_vertex,
                "transitions per state": lead.rows_per_vertex,
                f"lead in {self.measure[0]}": lead.interval,
            }
            for lead in found
        ]
        text = f"{self.winner}'s lead grows with the size of the map and the boxes"
        if len(found) < FEWEST_TASKS:
            checks = [Check(text, f"{len(found)} tasks; a trend needs {FEWEST_TASKS}", None)]
            return self.conclude(checks, groups, [], {TITLE: table})
        with_size = self._trend(found, [float(lead.size) for lead in found], "size")
        chance = chance_of_order([lead.size for lead in found], [lead.interval.estimate for lead in found])
        holds: bool | None = None
        if with_size.high < 0:
            holds = False
        elif with_size.low > 0 and chance <= LEVEL:
            holds = True
        others = [
            {"lead against": name, "rank correlation": self._trend(found, values, name)}
            for name, values in (
                ("edges per state", [lead.edges_per_vertex for lead in found]),
                ("transitions per state", [lead.rows_per_vertex for lead in found]),
                ("states seen", [lead.vertices for lead in found]),
            )
            if not np.isnan(values).any()
        ]
        checks = [Check(text, f"rank correlation {with_size}, by chance {chance:.2g}", holds)]
        more = {TITLE: table, "Lead against the measured graph": others}
        return self.conclude(checks, groups, [], more)

    def leads(self, groups: Groups) -> list[Lead]:
        """Return the lead on each task, from the smallest task to the largest."""
        found = []
        for task, group in groups.items():
            values = scores({task: group}, self.compared, self.measure[1])
            lead = (values[self.winner] - np.mean([values[other] for other in self.others], axis=0))[:, 0]
            interval = around(float(interquartile_mean(lead[None])[0]), self._drawn(lead, task))
            graphs = list(group.runs[self.winner].values())
            found.append(
                Lead(
                    task,
                    placements(task),
                    lead,
                    interval,
                    _median(graphs, "vertices"),
                    _median(graphs, "edges", "vertices"),
                    _median(graphs, "rows", "vertices"),
                )
            )
        return sorted(found, key=lambda entry: (entry.size, entry.task))

    def _trend(self, found: Sequence[Lead], against: Sequence[float], name: str) -> Interval:
        """Return the rank correlation of the leads with other numbers, seeds resampled within each task."""
        estimate = float(rank_correlation(against, [lead.interval.estimate for lead in found]))
        drawn = np.stack([self._drawn(lead.values, lead.task, name) for lead in found], axis=1)
        return around(estimate, rank_correlation(np.broadcast_to(against, drawn.shape), drawn))

    def _drawn(self, lead: NDArray[np.float64], *names: str) -> NDArray[np.float64]:
        generator = named_generator(self.seed, "lead", *names)
        return interquartile_mean(lead[generator.integers(len(lead), size=(REPEATS, len(lead)))])


def placements(task: str) -> int:
    """Return the number of ways to place the player and the boxes of a Sokoban task on its map."""
    options: Any = find_task(task).options()
    cells, boxes = int(options.height * options.width), int(options.boxes)
    return math.comb(cells, boxes) * (cells - boxes)


def _median(runs: Sequence[TrainedRun], number: str, per: str | None = None) -> float:
    """Return the median over runs of a graph statistic, or of its ratio to another; NaN if unknown."""
    known = [
        run.graph[number] / (1.0 if per is None else run.graph[per])
        for run in runs
        if number in run.graph and (per is None or run.graph.get(per))
    ]
    return float(np.median(known)) if known else math.nan
