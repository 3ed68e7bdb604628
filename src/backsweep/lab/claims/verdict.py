"""The answer to a question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from backsweep.lab.stats.seeds_needed import MOST

Table = list[dict[str, Any]]
"""Entries, each by column."""
Outcome = Literal["reproduced", "not reproduced", "holds", "does not hold", "inconclusive", "no verdict", "not run"]


@dataclass(frozen=True)
class Check:
    """One check of a claim, what was found, and whether it holds; None is undecided."""

    text: str
    found: str
    holds: bool | None
    needs: int | None = None
    """Seeds that would decide it while it is open, if what was found stays as it is; None if that is not known."""


@dataclass(frozen=True)
class Verdict:
    """The outcome, why, and the numbers behind it."""

    outcome: Outcome
    summary: str
    checks: tuple[Check, ...] = ()
    table: Table = field(default_factory=list)
    """Numbers for the report."""
    records: int = 0
    """The number of records or runs behind it."""
    more: dict[str, Table] = field(default_factory=dict)
    """Additional tables that do not decide, by title."""
    about: str = ""
    """What part of the claim it is about ("4 of 7 tasks"), empty for all of it."""
    short: str = ""
    """The result in one sentence: who is ahead, where, by how much."""
    number: str = ""
    """The number that the claim stands or falls with, for a table; empty where the short sentence says it."""

    @property
    def needs(self) -> int | None:
        """Seeds that would decide every check that is open; None if none is, or if that is not known."""
        if self.outcome != "inconclusive":
            return None
        return max(
            (check.needs for check in self.checks if check.holds is None and check.needs is not None), default=None
        )

    @property
    def needs_in_words(self) -> str:
        """How many seeds would decide it; empty if that is not known."""
        if self.needs is None:
            return ""
        many = f"{MOST:,} seeds or more" if self.needs >= MOST else f"about {self.needs:,} seeds"
        return f"{many}, if differences stay as they are"

    @property
    def headline(self) -> str:
        """The outcome, with what it is about if that is not everything."""
        return f"{self.outcome} on {self.about}" if self.about else self.outcome

    @property
    def checks_in_words(self) -> str:
        """How many checks of the claim hold, and which do not; empty for a claim with one check."""
        if len(self.checks) < 2:
            return ""
        holding = sum(check.holds is True for check in self.checks)
        every = holding == len(self.checks)
        words = [f"{all_of(holding)} parts hold" if every else f"{holding} of {len(self.checks)} parts hold"]
        for word, state in (("undecided", None), ("against it", False)):
            if texts := [check.text for check in self.checks if check.holds is state]:
                words.append(f"{word}: {texts[0] if len(texts) == 1 else len(texts)}")
        return "; ".join(words) + "."

    @property
    def found(self) -> str:
        """The whole verdict in words."""
        return " ".join(filter(None, (self.checks_in_words, self.summary)))


def all_of(count: int) -> str:
    """Return "Both" for two, else "All"."""
    return "Both" if count == 2 else f"All {count}"


NOT_RUN = Verdict("not run", "There are no records for this question yet.")


def as_goal(verdict: Verdict) -> Verdict:
    """Return a verdict in the words of a goal, which holds or does not."""
    words: dict[Outcome, Outcome] = {"reproduced": "holds", "not reproduced": "does not hold"}
    return replace(verdict, outcome=words.get(verdict.outcome, verdict.outcome))


def all_checks(
    checks: list[Check], summary: str, table: Table, records: int, more: dict[str, Table] | None = None, **words: str
) -> Verdict:
    """Return "reproduced" if every check holds, "not reproduced" if one does not, else "inconclusive".

    `words` are its short sentence and its number.
    """
    holds = [check.holds for check in checks]
    outcome: Outcome = "inconclusive"
    if False in holds:
        outcome = "not reproduced"
    elif None not in holds and holds:
        outcome = "reproduced"
    return Verdict(outcome, summary, tuple(checks), table, records, {} if more is None else more, **words)
