"""Splits parameters that a docstring documents together ("n_step, gamma"), so that each is shown with its own type."""

from __future__ import annotations

import re
from typing import Any

import griffe

JOINT = re.compile(r"^( *)(\w+(?:, \w+)+)\n((?:\1 +\S.*(?:\n|$)|\n(?=\1 ))+)", re.MULTILINE)


class SplitParameters(griffe.Extension):
    """Gives every parameter an entry of its own, before docstrings are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a class or function."""
        if obj.docstring is not None and "Parameters\n" in obj.docstring.value:
            obj.docstring.value = split(obj.docstring.value)


def split(text: str) -> str:
    """Return a docstring with an entry for each of the parameters that share one."""
    head, title, rest = text.partition("Parameters\n")
    rest, *others = re.split(r"(?=^(?:Returns|Examples)\n-)", rest, maxsplit=1, flags=re.MULTILINE)

    def separate(found: re.Match[str]) -> str:
        indent, names, description = found.groups()
        return "".join(f"{indent}{name}\n{description}" for name in names.split(", "))

    return head + title + JOINT.sub(separate, rest if rest.endswith("\n") else rest + "\n") + "".join(others)
