"""The commands `backsweep experiment list` and `show`."""

from __future__ import annotations

import argparse
from typing import Any

SCALES = ("smoke", "laptop", "paper")
UNBROKEN = "\0"
"""A space at which a line must not end."""


def list_command(parsed: argparse.Namespace) -> int:
    """Print one line per question."""
    from backsweep.lab.claims.questions import QUESTIONS

    headers = {"paper": "\nThe paper's claims:", "released code": "\nThe paper's released code:"}
    for question in QUESTIONS:
        if header := headers.pop(question.kind, ""):
            print(header)
        print(f"{question.id:>4}  {question.title}")
    print("\n'backsweep experiment show C3' shows the details of one.")
    return 0


def show_command(parsed: argparse.Namespace) -> int:
    """Print the details of one question."""
    from backsweep.lab.claims.questions import find_question

    question = find_question(parsed.question)
    print(f"{question.id}: {question.title}\n")
    for name, text in (
        ("question", question.question),
        (question.claimed_by.lower(), question.claim),
        ("measured", question.metric),
        ("decided by", question.decided_by),
        ("missing", question.missing),
    ):
        if text:
            print(_indented(f"{name}: {text}"))
    print()
    shown: dict[str, str] = {}
    for scale in SCALES:
        for what in question.plans(scale) or (None,):  # type: ignore[arg-type]
            print(_scale_line(scale, what))
            for name, names in _choices(what).items():
                if shown.get(name) != names:
                    print(_indented(f"    {name} {names}"))
                shown[name] = names
    return 0


def _indented(text: str) -> str:
    """Return a text in lines of at most 100 characters, the later ones indented; lines do not end at `UNBROKEN`."""
    import textwrap

    lines = textwrap.fill(text, width=100, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
    return lines.replace(UNBROKEN, " ")


def _choices(what: Any) -> dict[str, str]:
    """Return the tasks and lines of a scale as `experiment run` takes them."""
    import shlex

    from backsweep.lab.claims.question import Grid

    if not isinstance(what, Grid):
        return {}
    lines = (shlex.quote(variant.label).replace(" ", UNBROKEN) for variant in what.variants)
    return {"--tasks": shlex.join(what.tasks), "--lines": " ".join(lines)}


def _scale_line(scale: str, what: Any) -> str:
    from backsweep.lab.claims.question import Grid

    if what is None:
        return f"{scale}: nothing to run"
    if isinstance(what, Grid):
        count = f"{len(what.tasks)} x {len(what.variants)} x {len(what.seeds)}"
        return f"{scale}: {len(what.runs())} runs (tasks x lines x seeds: {count}), seeds {_seeds(what)}"
    extra = f", {dict(what.arguments)}" if what.arguments else ""
    return f"{scale}: study {what.name!r}, seeds {_seeds(what)}{extra}"


def _seeds(what: Any) -> str:
    first, last = what.seeds[0], what.seeds[-1]
    return f"{first}" if first == last else f"{first} to {last}"
