"""The speed of runs that were made at the same time, from their timing records.

    python -m benchmarks.recorded results/runs/minigrid-doorkey.paper.runs.jsonl.xz:ter,uer --first 60 --last 600

Named are folders with runs or archives anywhere below, or single archives, each with the methods that are meant where
it is not all of them. Every run's clock begins at zero with its first step, so the runs named must have begun together;
`--first` and `--last` are seconds on that clock between which all of them were running. Steps are added up over all
runs. The microseconds are those of one step of a run's whole fleet, by task and method.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.lab.records import archives_below, read_archive
from backsweep.record_files import record_file, record_lines


@dataclass(frozen=True)
class Course:
    """A run's clock: its steps by seconds, and how the time of each interval was spent."""

    name: str
    seconds: tuple[float, ...]
    steps: tuple[int, ...]
    parts: tuple[dict[str, float], ...]

    def taken(self, first: float, last: float) -> float:
        """Return the steps taken between two times; intervals that overlap one count in part."""
        before, after = np.interp((first, last), self.seconds, self.steps)
        return float(after - before)


def course_of(config: dict[str, Any], timings: Iterable[dict[str, Any]]) -> Course:
    """Return one run's clock."""
    seconds, steps, parts = [0.0], [0], []
    for record in timings:
        seconds.append(seconds[-1] + math.fsum(record["seconds"].values()))
        steps.append(record["step"])
        parts.append(record["seconds"])
    return Course(f"{config['task']} {config['method']}", tuple(seconds), tuple(steps), tuple(parts))


def courses_of(named: str) -> Iterator[Course]:
    """Yield the clocks of the runs of a folder or an archive, by some methods if it says which."""
    place, _, methods = named.partition(":")
    path = Path(place)
    for archive in archives_below(path) if path.is_dir() else [path]:
        for run in filter(None, read_archive(archive)):
            if not methods or run.config["method"] in methods.split(","):
                yield course_of(run.config, run.records("timing"))
    for config_file in sorted(path.rglob("config.json")):
        config = json.loads(config_file.read_text())
        records = record_file(config_file.parent)
        if records is not None and (not methods or config["method"] in methods.split(",")):
            lines = (json.loads(line) for line, whole in record_lines(records) if whole)
            yield course_of(config, (record for record in lines if record["kind"] == "timing"))


def microseconds(courses: Sequence[Course], first: float, last: float) -> dict[str, float]:
    """Return how the time of a step was spent, in the intervals between two times."""
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
    parser.add_argument("runs", nargs="+", help="folder or archive, or FOLDER:METHOD,METHOD")
    parser.add_argument("--first", type=float, default=60.0)
    parser.add_argument("--last", type=float, default=600.0)
    given = parser.parse_args(arguments)
    if not 0 <= given.first < given.last:
        parser.error(f"--first must be at least 0 and below --last, got {given.first:g} and {given.last:g}")
    for named in given.runs:
        if not Path(named.partition(":")[0]).exists():
            parser.error(f"there is no folder or archive {named.partition(':')[0]}")
    courses = [course for named in given.runs for course in courses_of(named)]
    if not courses:
        parser.error(f"no runs below {', '.join(given.runs)}")
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
