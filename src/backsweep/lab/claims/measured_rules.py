"""Rules for what is measured or checked directly: C11, C16, C20, C21 and C22."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backsweep.lab.claims.evidence import Evidence, Records
from backsweep.lab.claims.question import NOT_RUN, Check, Table, Variant, Verdict, all_checks
from backsweep.lab.claims.rules import Alike
from backsweep.lab.claims.summary import TrainingRule
from backsweep.lab.seeds import purpose_of
from backsweep.lab.studies.graphs import KINDS

ORDER_TEXTS = {
    "equal": "every step costs the same and every ending pays the same",
    "endings": "every step costs the same, endings pay differently",
    "costs": "steps cost differently",
    "positive": "some steps pay something (the claim excludes these)",
}
"""What the graphs of C20 are like, by kind."""


def reported(evidence: Evidence, kind: str) -> Records:
    """Return the records of one kind with reporting seeds."""
    return [record for record in evidence.of_kind(kind) if purpose_of(record.get("seed", 0)) == "reporting"]


@dataclass(frozen=True)
class CheapBatches:
    """C11: a TER batch takes 0.002 s on average, and about as long as PER's."""

    most_seconds: float = 0.002
    about: float = 2.0

    def decide(self, evidence: Evidence) -> Verdict:
        """Three checks: the mean is at most 2 ms; at most twice PER's mean; the 99th percentile at most twice PER's.

        Each number is the median over rounds, so that one disturbance does not decide. Records by the clock alone (of
        the first measurement) have no 99th percentile and are left out.
        """
        records = [record for record in reported(evidence, "speed") if "p99" in record]
        if not records:
            return NOT_RUN
        size = max(record["rows"] for record in records)
        records = [record for record in records if record["rows"] == size]
        table = [
            _times_of(records, operation, method)
            for operation in ("sample", "add")
            for method in dict.fromkeys(record["method"] for record in records)
        ]
        at = {(entry["operation"], entry["sampler"]): entry for entry in table}
        ter, per = at["sample", "ter"], at["sample", "per"]
        mean, other = ter["mean (µs)"], per["mean (µs)"]
        late, other_late = ter["p99 (µs)"], per["p99 (µs)"]
        checks = [
            Check("a TER batch takes at most 2 ms on average", f"{mean:.0f} µs", mean <= self.most_seconds * 1e6),
            Check(
                "at most twice what a PER batch takes", f"{mean:.0f} against {other:.0f} µs", mean <= self.about * other
            ),
            Check(
                "the 99th percentile of TER's batches is at most twice that of PER's",
                f"{late:.0f} against {other_late:.0f} µs",
                late <= self.about * other_late,
            ),
        ]
        slowest = f"{ter['max (µs)']:,.0f} and {per['max (µs)']:,.0f} µs"
        summary = (
            f"A TER batch takes {mean:.0f} µs of the processor on average, a PER batch {other:.0f}; the slowest of a "
            f"round {slowest}. Batches of {records[0]['batch']} from {size:,} rows of {records[0]['task']}; medians "
            "over rounds. Times by the clock, in the records as well, also count what else the machine did."
        )
        short = (
            f"A TER batch takes {mean:.0f} µs, a PER batch {other:.0f}; of a hundred batches 99 take at most "
            f"{late:.0f} and {other_late:.0f} µs, the slowest {slowest}."
        )
        return all_checks(checks, summary, table, len(records), short=short)


def _times_of(records: Records, operation: str, method: str) -> dict[str, Any]:
    """Return the medians over rounds of one sampler's times, in microseconds."""
    rounds = [record for record in records if (record["method"], record["operation"]) == (method, operation)]
    entry: dict[str, Any] = {
        "operation": operation,
        "sampler": method,
        "rows": rounds[0]["rows"],
        "rounds": len(rounds),
    }
    for name in ("mean", "median", "min", "p99", "p999", "max", "clock_mean", "clock_max"):
        title = name.replace("clock_", "by the clock: ")
        entry[f"{title} (µs)"] = float(np.median([record[name] for record in rounds])) * 1e6
    return entry


@dataclass(frozen=True)
class OptimalOrder:
    """C20: with non-positive rewards before the end, one reverse sweep finds the best values."""

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if every graph whose steps pay nothing or less is solved by one sweep."""
        records = reported(evidence, "sweep-order")
        if not records:
            return NOT_RUN
        table: Table = []
        checks = []
        for kind in KINDS:
            same = [record for record in records if record["rewards"] == kind]
            graphs, exact = sum(r["graphs"] for r in same), sum(r["exact"] for r in same)
            states, wrong = sum(r["states"] for r in same), sum(r["wrong_states"] for r in same)
            table.append(
                {
                    "graphs where": ORDER_TEXTS[kind],
                    "graphs": graphs,
                    "solved by one sweep": exact,
                    "states": states,
                    "wrong states": wrong,
                }
            )
            if kind != "positive":
                checks.append(
                    Check(
                        f"one sweep is enough where {ORDER_TEXTS[kind]}",
                        f"{exact:,} of {graphs:,} graphs",
                        exact == graphs,
                    )
                )
        summary = (
            "Reverse breadth-first order counts steps, not costs: it is the best order where all steps cost the same "
            "and all endings pay the same, and not in general where rewards are merely non-positive."
            if not all(check.holds for check in checks)
            else "Every graph was solved by one sweep."
        )
        equal, endings, costs = (f"{entry['solved by one sweep'] / entry['graphs']:.0%}" for entry in table[:3])
        short = (
            f"One sweep solves {equal} of graphs with equal steps and endings, {endings} where endings pay "
            f"differently, {costs} where steps cost differently."
        )
        return all_checks(checks, summary, table, len(records), short=short)


@dataclass(frozen=True)
class FullCoverage:
    """C21: batch mixing draws every transition."""

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if with mixing every stored row is drawn within the limit, on every seed; without, some are not."""
        records = reported(evidence, "coverage")
        if not records:
            return NOT_RUN
        table: Table = []
        checks = []
        for eta, mixed_in in dict.fromkeys((record["eta"], record["mixed_in"]) for record in records):
            same = [r for r in records if (r["eta"], r["mixed_in"]) == (eta, mixed_in)]
            never = [record["never_drawn"] for record in same]
            entry = {
                "eta": eta,
                "mixed in": mixed_in,
                "seeds": len(same),
                "rows": same[0]["rows"],
                "never drawn (most)": max(never),
                "batches (median)": float(np.median([record["batches"] for record in same])),
            }
            table.append(entry)
            if eta:
                checks.append(
                    Check(
                        f"eta {eta} with {mixed_in}: every row is drawn",
                        f"{entry['batches (median)']:.0f} batches of {same[0]['batch']} for {same[0]['rows']:,} rows",
                        max(never) == 0,
                    )
                )
            else:
                checks.append(
                    Check(
                        "without mixing some rows never are", f"{min(never):,} to {max(never):,} rows", min(never) > 0
                    )
                )
        undrawn = [record["never_drawn"] for record in records if record["eta"]]
        summary = (
            f"With mixing {max(undrawn, default=0):,} rows were left undrawn at most. Part of the states cannot reach "
            "any ending, and PER meets its worst case, all errors gone."
        )
        alone = [record["never_drawn"] for record in records if not record["eta"]]
        left = max(undrawn, default=0)
        short = (
            "With mixing every stored row is drawn" if not left else f"With mixing up to {left:,} rows are not drawn"
        )
        if alone:
            short += f", without it {min(alone):,} to {max(alone):,} of {records[0]['rows']:,} never are"
        return all_checks(checks, summary, table, len(records), short=f"{short}.")


@dataclass(frozen=True)
class LikeEbu:
    """C22: without repeated states, TER's order is EBU's."""

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if a sweep with its roots one by one (the paper's text) hands out whole episodes from their ends."""
        records = reported(evidence, "no-repeats")
        if not records:
            return NOT_RUN
        table: Table = []
        for sampler in dict.fromkeys(record["sampler"] for record in records):
            same = [record for record in records if record["sampler"] == sampler]
            total, whole = sum(r["stretches"] for r in same), sum(r["whole_episodes"] for r in same)
            table.append({"sampler": sampler, "stretches": total, "whole episodes from their ends": whole})
        checks = [
            Check(
                f"{entry['sampler']}: whole episodes, last step first",
                f"{entry['whole episodes from their ends']:,} of {entry['stretches']:,}",
                entry["whole episodes from their ends"] == entry["stretches"],
            )
            for entry in table
            if entry["sampler"] in ("ter, trees one by one", "ter, one root", "ebu")
        ]
        landers = reported(evidence, "revisits")
        steps, again = sum(r["steps"] for r in landers), sum(r["again"] for r in landers)
        lander = (
            f" LunarLander under random actions: {again:,} of {steps:,} steps led to a state seen before."
            if steps
            else ""
        )
        summary = (
            "A sweep with its roots one by one hands out episodes from their ends, as EBU does; EBU's targets differ "
            f"beyond that. With all roots in one queue, episodes are interleaved instead.{lander}"
        )
        whole = sum(check.holds is True for check in checks)
        short = (
            "TER with its roots one by one hands out whole episodes from their ends, as EBU does."
            if whole == len(checks)
            else f"Whole episodes from their ends with {whole} of {len(checks)} samplers."
        )
        return all_checks(checks, summary, table, len(records) + len(landers), short=short)


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
            checks=trained.checks,
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
        checks = []
        for task in dict.fromkeys(record["task"] for record in records):
            entry: dict[str, Any] = {"task": task}
            for dimension in sorted({record["dimension"] for record in records}):
                same = [r for r in records if r["task"] == task and r["dimension"] == dimension]
                entry["observations"], entry["matrices"] = same[0]["observations"], len(same)
                entry[f"collisions at d = {dimension}"] = sum(record["collisions"] for record in same)
            found = [value for name, value in entry.items() if name.startswith("collisions")]
            checks.append(
                Check(
                    f"no two observations of {task} share a key",
                    f"{sum(found)} collisions among {entry['observations']:,} observations",
                    True if not any(found) else None,
                )
            )
            table.append(entry)
        clean = all(check.holds for check in checks)
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
        return all_checks(checks, summary, table, len(records), short=f"{where}.")


def _pairs(count: int) -> str:
    return "1 pair of states shares" if count == 1 else f"{count} pairs of states share"


def _numbers(dimension: int) -> str:
    return "1 number" if dimension == 1 else f"{dimension} numbers"
