"""Rules for the questions about the chain: C1, C2, C19 and G7."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence, Records
from backsweep.lab.claims.question import NOT_RUN, Check, Table, Verdict, all_checks
from backsweep.lab.claims.rules import LEVEL
from backsweep.lab.seeds import purpose_of
from backsweep.lab.stats import (
    Interval,
    around,
    holm,
    median_interval,
    paired_difference,
    plain,
    quantile,
    restricted_mean,
)
from backsweep.lab.studies.tabular.learner import METHODS, PLANNED
from backsweep.lab.studies.tabular.study import (
    BATCHES,
    COMPARED,
    DIFFUSION_TARGETS,
    DIFFUSIONS,
    INITIALS,
    TARGETS,
    moments,
)

FIRST = {"batch": 1, "target_every": 0}
"""The setting that decides: one transition per backup (the paper's Figure 1 moves a value one step back per backup)
and no target table (Q-learning on a table has none)."""
KEY = ("method", "batch", "initial", "target_every", "diffusion", "length")
EARLY = 100  # the number of backups in the paper's figure


def all_settings() -> list[dict[str, Any]]:
    """Return every combination of batch size, initial values and target interval."""
    names = ("batch", "initial", "target_every")
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(BATCHES, INITIALS, TARGETS)]


def in_words(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting as columns of a table."""
    columns = {"batch": "batch", "initial": "initial values", "target_every": "target copied every"}
    return {title: setting[name] for name, title in columns.items()}


def tabular_records(evidence: Evidence, **wanted: Any) -> Records:
    """Return the records of the full-size study with some settings, by data set."""
    chosen = {"length": 20, "diffusion": 0.5, **wanted}
    settings = evidence.once("tabular", _by_setting)
    if set(chosen) == set(KEY):
        return list(settings.get(tuple(chosen[name] for name in KEY), []))
    found = [
        record
        for records in settings.values()
        for record in records
        if all(record[name] == value for name, value in chosen.items())
    ]
    return sorted(found, key=lambda record: int(record["data_seed"]))


def _by_setting(evidence: Evidence) -> dict[tuple[Any, ...], Records]:
    """Return the records of each setting in the order of their data sets; a data set counts once."""
    settings: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = {}
    for record in evidence.of_kind("tabular"):
        if purpose_of(record["data_seed"]) == "reporting":
            key = tuple(record[name] for name in KEY)
            settings.setdefault(key, {})[record["data_seed"]] = record
    return {key: [found[seed] for seed in sorted(found)] for key, found in settings.items()}


def backups_to_solve(records: Iterable[dict[str, Any]]) -> tuple[list[float], list[bool]]:
    """Return when each run solved the task, or when it ended without, and which of the two it was."""
    found = list(records)
    happened = [record["solved_at"] is not None for record in found]
    times = [
        float(record["solved_at"] if done else record["backups"]) for record, done in zip(found, happened, strict=True)
    ]
    return times, happened


def curve(record: dict[str, Any], name: str) -> NDArray[np.float64]:
    """Return a run's curve at `moments(backups)`; after its end it stays constant."""
    points = len(moments(record["backups"]))
    values = np.asarray(record[name], np.float64)
    return np.concatenate([values, np.full(points - len(values), values[-1])])


def median_backups(records: Records, *names: str) -> Interval:
    """Return the Kaplan-Meier median of the backups to a solution, with its interval."""
    times, happened = backups_to_solve(records)
    key = tuple(times), tuple(happened), names
    return _median(*key)


@lru_cache(maxsize=4096)
def _median(times: tuple[float, ...], happened: tuple[bool, ...], names: tuple[str, ...]) -> Interval:
    return median_interval(times, happened, generator=named_generator(0, "median", *names))


def count_of(evidence: Evidence, methods: Sequence[str] = METHODS) -> int:
    """Return the number of runs of some methods; a run that two studies made counts once."""
    settings = evidence.once("tabular", _by_setting)
    return sum(len(records) for key, records in settings.items() if key[KEY.index("method")] in methods)


def medians_by_setting(evidence: Evidence, methods: Sequence[str] = METHODS) -> Table:
    """Return the table of medians: every method in every setting."""
    entries = []
    for setting, method in itertools.product(all_settings(), methods):
        records = tabular_records(evidence, method=method, **setting)
        if not records:
            continue
        times, happened = backups_to_solve(records)
        entries.append(
            {
                **in_words(setting),
                "method": method,
                "data sets": len(records),
                "solved": sum(happened),
                "median backups": median_backups(records, method),
                "lower quartile": quantile(times, happened, 0.25),
                "upper quartile": quantile(times, happened, 0.75),
                "budget": records[0]["backups"],
            }
        )
    return entries


@dataclass(frozen=True)
class ThirtyBackups:
    """C1: 30 backups for TER, about twice that for EBU, more than 100 for the rest."""

    most_for_ter: float = 45.0
    ebu_ratio: tuple[float, float] = (1.5, 3.0)

    def decide(self, evidence: Evidence) -> Verdict:
        """All three checks must hold from both starts, at one transition per backup without a target table."""
        if not tabular_records(evidence, **FIRST):
            return NOT_RUN
        checks = [check for initial in INITIALS for check in self.checks(evidence, initial=initial, **FIRST)]
        table = medians_by_setting(evidence)
        elsewhere = [
            f"{batch} per backup: {'holds' if all(check.holds for check in found) else 'does not hold'}"
            for batch in BATCHES[1:]
            if (found := [p for i in INITIALS for p in self.checks(evidence, initial=i, batch=batch, target_every=0)])
        ]
        medians = {
            method: median_backups(tabular_records(evidence, method=method, initial="zero", **FIRST), method)
            for method in ("ter", "ebu", "uer", "per", "discor", "ter-shuffled")
        }
        listed = ", ".join(f"{method} {median}" for method, median in medians.items())
        summary = (
            f"Median backups from zero, one transition each: {listed}. The same rule at other batch sizes: "
            f"{'; '.join(elsewhere)}."
        )
        del medians["ter-shuffled"]
        first, *others = sorted(medians, key=lambda method: medians[method].estimate)
        names = [title_of(method) for method in medians if method != first]
        rest = " and ".join(dict.fromkeys(plain(medians[method].estimate) for method in (others[0], others[-1])))
        short = (
            f"{title_of(first)} solves the chain in {plain(medians[first].estimate)} backups; "
            f"{', '.join(names[:-1])} and {names[-1]} need between {rest}."
        )
        return all_checks(checks, summary, table, count_of(evidence), short=short)

    def checks(self, evidence: Evidence, **setting: Any) -> list[Check]:
        """Return the claim's checks in one setting."""

        def median(method: str) -> Interval:
            return median_backups(tabular_records(evidence, method=method, **setting), method)

        if not tabular_records(evidence, method="ter", **setting):
            return []
        where = f"from {'zero' if setting['initial'] == 'zero' else 'uniform(0, 0.1)'}"
        ter, ebu = median("ter"), median("ebu")
        checks = [
            Check(
                f"TER needs about 30 backups (at most {self.most_for_ter:.0f}), {where}",
                str(ter),
                ter.within(-math.inf, self.most_for_ter),
            )
        ]
        low, high = (bound * ter.estimate for bound in self.ebu_ratio)
        ratio = "no multiple of TER's" if math.isinf(ebu.estimate) else f"{ebu.estimate / ter.estimate:.3g} times TER's"
        checks.append(
            Check(
                f"EBU needs about twice that ({self.ebu_ratio[0]} to {self.ebu_ratio[1]} times), {where}",
                f"{ebu}, {ratio}",
                ebu.within(low, high),
            )
        )
        for method in ("uer", "per", "discor"):
            found = median(method)
            early = found.within(-math.inf, EARLY)
            checks.append(
                Check(
                    f"{title_of(method)} does not solve it in {EARLY}, {where}",
                    str(found),
                    None if early is None else not early,
                )
            )
        return checks


@dataclass(frozen=True)
class FasterValues:
    """C2: the value error falls faster under TER."""

    def decide(self, evidence: Evidence) -> Verdict:
        """TER's mean error over the first 100 backups is lower than each baseline's, in pairs, after Holm."""
        if not tabular_records(evidence, **FIRST):
            return NOT_RUN
        checks, table = [], []
        for setting in all_settings():
            entries = self._compare(evidence, setting)
            table += entries
            if FIRST.items() <= setting.items():
                checks += [
                    Check(
                        f"TER's error is lower than that of {title_of(entry['against'])}, from {setting['initial']}",
                        f"{entry['difference']}, p {entry['p (Holm)']:.3g}",
                        entry["difference"].estimate < 0 if entry["p (Holm)"] <= LEVEL else None,
                    )
                    for entry in entries
                    if entry["against"] in ("uer", "per", "ebu", "discor")
                ]
        better = sum(entry["p (Holm)"] <= LEVEL and entry["difference"].estimate < 0 for entry in table)
        summary = (
            f"Mean |Q - Q*| over the first {EARLY} backups, TER minus the other, in pairs by data set. TER is ahead in "
            f"{better} of {len(table)} comparisons over all batch sizes, starts and target intervals."
        )
        lower = sum(check.holds is True for check in checks)
        first = f"TER's error falls faster in {lower} of {len(checks)} comparisons without a target table"
        short = f"{first}, in {better} of {len(table)} over all settings."
        return all_checks(checks, summary, table, count_of(evidence), short=short)

    def _compare(self, evidence: Evidence, setting: dict[str, Any]) -> Table:
        def early(method: str) -> NDArray[np.float64]:
            records = tabular_records(evidence, method=method, **setting)
            inside = [moment for moment in moments(records[0]["backups"]) if moment <= EARLY]
            curves = np.array([curve(record, "error")[: len(inside)] for record in records])
            areas: NDArray[np.float64] = np.trapezoid(curves, inside, axis=1) / inside[-1]
            return areas[:, None]

        if not tabular_records(evidence, method="ter", **setting):
            return []
        others = [method for method in METHODS if method != "ter"]
        ours = early("ter")
        results = [paired_difference(ours, early(other), generator=named_generator(0, other)) for other in others]
        return [
            {**in_words(setting), "against": other, "difference": difference, "p (Holm)": p_value}
            for other, (difference, _), p_value in zip(
                others, results, holm([p_value for _, p_value in results]), strict=True
            )
        ]


@dataclass(frozen=True)
class PlannedBackups:
    """G7: with a target table and batches of training's size, graph values need fewer backups than TER."""

    batch: int = 64

    def decide(self, evidence: Evidence) -> Verdict:
        """The interval of each median is below TER's, however rows are drawn, at every interval of copies."""
        copied = [target for target in TARGETS if target]
        if not all(
            tabular_records(evidence, method=method, batch=self.batch, initial=initial, target_every=target)
            for method, initial, target in itertools.product(COMPARED, INITIALS, copied)
        ):
            return NOT_RUN
        places = list(itertools.product(INITIALS, copied))
        checks = [self._check(evidence, method, *place) for place in places for method in PLANNED]
        table = medians_by_setting(evidence, COMPARED)
        medians = {
            (method, target): self._median(evidence, method, "zero", target).estimate
            for method in COMPARED
            for target in copied
        }
        last = copied[-1]
        listed = ", ".join(f"{plain(medians[method, last])} ({title_of(method)})" for method in PLANNED)
        by_target = ", ".join(f"{plain(medians['ter', target])} (every {target})" for target in copied)
        summary = (
            f"Median backups from zero, {self.batch} transitions each, target copied every {last}: {listed}. TER by "
            f"how often the target is copied: {by_target}."
        )
        planned = [medians[method, target] for method in PLANNED for target in copied]
        short = (
            f"Graph values solve the chain in {plain(min(planned))} to {plain(max(planned))} backups of {self.batch} "
            f"transitions, by how rows are drawn, TER in {plain(medians['ter', copied[0]])} to "
            f"{plain(medians['ter', last])}, by how often the target is copied."
        )
        return all_checks(checks, summary, table, count_of(evidence, COMPARED), short=short)

    def _median(self, evidence: Evidence, method: str, initial: str, target: int) -> Interval:
        records = tabular_records(evidence, method=method, initial=initial, target_every=target, batch=self.batch)
        return median_backups(records, method)

    def _check(self, evidence: Evidence, method: str, initial: str, target: int) -> Check:
        ours = self._median(evidence, method, initial, target)
        ter = self._median(evidence, "ter", initial, target)
        return Check(
            f"{title_of(method)} ahead of TER, target copied every {target}, from {initial}",
            f"{ours}, TER {ter}",
            True if ours.high < ter.low else False if ours.low > ter.high else None,
        )


@dataclass(frozen=True)
class DiffusionMatters:
    """C19: EBU's beta hardly matters."""

    margin: float = 1.25

    def decide(self, evidence: Evidence) -> Verdict:
        """No beta needs more than 1.25 times the mean backups of another (limited to the budget), in any setting.

        Holds if every interval of a ratio to beta 0.5 lies within 1/1.25 to 1.25; fails if one lies wholly outside.
        """
        checks: list[Check] = []
        table: Table = []
        chosen = [setting for setting in all_settings() if setting["target_every"] in DIFFUSION_TARGETS]
        for setting, diffusion in itertools.product(chosen, DIFFUSIONS):
            usual = tabular_records(evidence, method="ebu", **setting)
            records = tabular_records(evidence, method="ebu", **setting, diffusion=diffusion)
            if not records or diffusion == 0.5:
                continue
            ratio = _ratio(records, usual)
            where = "batch {batch}, from {initial}, target copied every {target_every}".format(**setting)
            checks.append(
                Check(
                    f"beta {diffusion} like 0.5 ({where})", f"ratio {ratio}", ratio.within(1 / self.margin, self.margin)
                )
            )
            table.append(
                {
                    **in_words(setting),
                    "beta": diffusion,
                    "median backups": median_backups(records, str(diffusion)),
                    "median at beta 0.5": median_backups(usual, "0.5"),
                    "ratio of means": ratio,
                }
            )
        if not checks:
            return NOT_RUN
        summary = f"Each compares mean backups with those at beta 0.5; alike is within a factor of {self.margin}."
        least = min(table, key=lambda entry: entry["ratio of means"].estimate)
        most = max(table, key=lambda entry: entry["ratio of means"].estimate)
        short = (
            f"Beta {most['beta']:g} takes up to {most['ratio of means'].estimate:.2g} times the backups of beta 0.5, "
            f"beta {least['beta']:g} down to {least['ratio of means'].estimate:.2g} times."
        )
        return all_checks(checks, summary, table, len(table) * len(usual), short=short)


def _ratio(first: Records, second: Records) -> Interval:
    """Return the ratio of mean backups to a solution, data sets resampled in pairs."""
    (ours, done), (theirs, theirs_done) = backups_to_solve(first), backups_to_solve(second)
    horizon = float(first[0]["backups"])
    estimate = restricted_mean(ours, done, horizon) / restricted_mean(theirs, theirs_done, horizon)
    # All censored runs end at the horizon, so restricted means are plain means.
    a, b = np.minimum(ours, horizon), np.minimum(theirs, horizon)
    chosen = named_generator(0, "ratio").integers(len(a), size=(1_000, len(a)))
    return around(estimate, a[chosen].mean(axis=1) / b[chosen].mean(axis=1))
