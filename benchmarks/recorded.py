"""How fast runs went that were made at the same time, from their own timing records.

    python -m benchmarks.recorded results/runs/minigrid-doorkey results/runs/minigrid-unlock --first 60 --last 600

Every run's clock begins at zero with its first step, so the runs named must have begun together; `--first` and `--last`
are seconds on that clock between which all of them were running. Steps are added up over all runs. The microseconds are
those of one step of a run's whole fleet, by task and method.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backsweep.agent.session.records import TimingRecord, read_records


@dataclass(frozen=True)
class Course:
    """A run's clock: after how many seconds it was at which step, and what each stretch in between went to."""

    name: str
    seconds: tuple[float, ...]
    steps: tuple[int, ...]
    parts: tuple[dict[str, float], ...]

    def taken(self, first: float, last: float) -> float:
        """Return the steps taken between two times; stretches that reach over one count in part."""
        before, after = np.interp((first, last), self.seconds, self.steps)
        return float(after - before)


def course_of(folder: Path) -> Course:
    """Read one run's clock."""
    config = json.loads((folder / "config.json").read_text())
    seconds, steps, parts = [0.0], [0], []
    for record in read_records(folder, "timing"):
        assert isinstance(record, TimingRecord)
        seconds.append(seconds[-1] + math.fsum(record.seconds.values()))
        steps.append(record.step)
        parts.append(record.seconds)
    return Course(f"{config['task']} {config['method']}", tuple(seconds), tuple(steps), tuple(parts))


def microseconds(courses: Sequence[Course], first: float, last: float) -> dict[str, float]:
    """Return what one step went to in the stretches that lie wholly between two times."""
    total: dict[str, float] = defaultdict(float)
    steps = 0
    for course in courses:
        for index, part in enumerate(course.parts):
            if course.seconds[index] >= first and course.seconds[index + 1] <= last:
                steps += course.steps[index + 1] - course.steps[index]
                for name, seconds in part.items():
                    total[name] += seconds
    return {name: 1e6 * seconds / steps for name, seconds in total.items()} if steps else {}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the speed of all runs together, and where a step went by task and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="with runs anywhere below")
    parser.add_argument("--first", type=float, default=60.0)
    parser.add_argument("--last", type=float, default=600.0)
    given = parser.parse_args(arguments)
    if not 0 <= given.first < given.last:
        parser.error(f"--first must be at least 0 and below --last, got {given.first:g} and {given.last:g}")
    runs = sorted({path.parent for folder in given.folders for path in folder.rglob("records.jsonl*")})
    if not runs:
        parser.error(f"no runs below {', '.join(map(str, given.folders))}")
    courses = [course_of(run) for run in runs]
    ended = [course for course in courses if course.seconds[-1] < given.last]
    if ended:
        end = min(course.seconds[-1] for course in ended)
        parser.error(f"{len(ended)} of {len(courses)} runs end before --last {given.last:g}, the first at {end:.0f}")
    span = given.last - given.first
    together = sum(course.taken(given.first, given.last) for course in courses) / span
    print(f"{len(courses)} runs from {given.first:g} to {given.last:g} s: {together:,.0f} steps/s together")
    by_name: dict[str, list[Course]] = defaultdict(list)
    for course in courses:
        by_name[course.name].append(course)
    for name, members in by_name.items():
        each = sum(course.taken(given.first, given.last) for course in members) / span / len(members)
        where = microseconds(members, given.first, given.last)
        spent = "  ".join(f"{part} {value:.0f}" for part, value in where.items() if value >= 0.5)
        print(f"  {name:40} {each:7,.0f} steps/s a run; us a step: {spent}")


if __name__ == "__main__":
    main()
