"""All questions: those about graph values, the trials on seeds for tuning, and the paper's claims in its order.

Each is a module of `questions/` whose name begins with its id.
"""

from __future__ import annotations

import importlib
import pkgutil

from backsweep.lab.claims import questions
from backsweep.lab.claims.question import Question

_LETTERS = "gtc"  # graph values, tuning, claims
_MODULES = sorted(
    (entry.name for entry in pkgutil.iter_modules(questions.__path__) if entry.name[1:3].isdigit()),
    key=lambda name: (_LETTERS.index(name[0]), name),
)
QUESTIONS: tuple[Question, ...] = tuple(
    importlib.import_module(f"{questions.__name__}.{name}").QUESTION for name in _MODULES
)
CLAIMS: tuple[Question, ...] = tuple(question for question in QUESTIONS if question.kind == "paper")


def find_question(name: str) -> Question:
    """Return the question called `name` (such as C3), or say which there are."""
    for question in QUESTIONS:
        if question.id.lower() == name.lower():
            return question
    others = ", ".join(question.id for question in QUESTIONS if question.kind != "paper")
    raise ValueError(f"unknown question {name!r}; there are {CLAIMS[0].id} to {CLAIMS[-1].id} and {others}")
