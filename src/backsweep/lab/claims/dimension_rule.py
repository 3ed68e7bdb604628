"""The rule of C16: whether the dimension of the projection matters, by counting and by training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.measured_rules import reported
from backsweep.lab.claims.question import Variant
from backsweep.lab.claims.rules import Alike
from backsweep.lab.claims.summary import TrainingRule
from backsweep.lab.claims.verdict import NOT_RUN, Part, Table, Verdict, all_parts


@dataclass(frozen=True)
class SameAtEveryDimension(TrainingRule):
    """C16: TER learns alike at every dimension, because keys do not collide, or although some do."""

    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]

    def decide(self, evidence: Evidence) -> Verdict:
        """Counting decides if nothing collides; otherwise the runs do, and without any it stays open."""
        counted = NoCollisions().decide(evidence)
        trained = Alike(self.compared, self.variants, self.tasks).decide(evidence)
        if counted.outcome == "not run":
            return trained
        if trained.outcome == "not run":
            return replace(counted, short=f"{counted.short} Not trained with yet.")
        clean = counted.outcome == "reproduced"
        return replace(
            trained,
            outcome=counted.outcome if clean else trained.outcome,
            summary=f"{counted.summary} {trained.summary}",
            parts=trained.parts,
            more={**trained.more, "Collisions": counted.table},
            about="" if clean else trained.about,
            short=f"{counted.short} {trained.short}",
        )


@dataclass(frozen=True)
class NoCollisions:
    """Two different observations never share a key."""

    def decide(self, evidence: Evidence) -> Verdict:
        """If no two observations share a key at any dimension, the graph, and with it TER, is the same at each."""
        records = reported(evidence, "collisions")
        if not records:
            return NOT_RUN
        table: Table = []
        parts = []
        for task in dict.fromkeys(record["task"] for record in records):
            row: dict[str, Any] = {"task": task}
            for dimension in sorted({record["dimension"] for record in records}):
                same = [r for r in records if r["task"] == task and r["dimension"] == dimension]
                row["observations"], row["matrices"] = same[0]["observations"], len(same)
                row[f"collisions at d = {dimension}"] = sum(record["collisions"] for record in same)
            found = [value for name, value in row.items() if name.startswith("collisions")]
            parts.append(
                Part(
                    f"no two observations of {task} share a key",
                    f"{sum(found)} collisions among {row['observations']:,} observations",
                    True if not any(found) else None,
                )
            )
            table.append(row)
        clean = all(part.holds for part in parts)
        counts = {
            dimension: sum(record["collisions"] for record in records if record["dimension"] == dimension)
            for dimension in sorted({record["dimension"] for record in records})
        }
        listed = ", ".join(f"{count} at d = {dimension}" for dimension, count in counts.items())
        then = "the graph is the same at every dimension" if clean else "runs have to decide"
        summary = f"Collisions among all states of all levels: {listed}; so {then}."
        shared = {dimension: count for dimension, count in counts.items() if count}
        keys = [f"{_pairs(count)} a key of {_numbers(dimension)}" for dimension, count in shared.items()]
        none = [dimension for dimension in counts if dimension not in shared]
        where = f"No two states share a key of {_numbers(min(counts))} or more"
        if shared:
            where = f"{', '.join(keys)}" + (f", none a key of {none[0]} or more" if none else "")
        return all_parts(parts, summary, table, len(records), short=f"{where}.")


def _pairs(count: int) -> str:
    return "1 pair of states shares" if count == 1 else f"{count} pairs of states share"


def _numbers(dimension: int) -> str:
    return "1 number" if dimension == 1 else f"{dimension} numbers"
