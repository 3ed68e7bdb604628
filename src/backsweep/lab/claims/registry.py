"""All questions, in the paper's order: each is a module of `questions/` whose name begins with its number."""

from __future__ import annotations

import importlib
import pkgutil

from backsweep.lab.claims import questions
from backsweep.lab.claims.question import Question

_MODULES = sorted(entry.name for entry in pkgutil.iter_modules(questions.__path__) if entry.name[1:3].isdigit())
QUESTIONS: tuple[Question, ...] = tuple(
    importlib.import_module(f"{questions.__name__}.{name}").QUESTION for name in _MODULES
)


def find_question(name: str) -> Question:
    """Return the question called `name` (such as C3), or say which there are."""
    for question in QUESTIONS:
        if question.id.lower() == name.lower():
            return question
    raise ValueError(f"unknown question {name!r}; there are {QUESTIONS[0].id} to {QUESTIONS[-1].id}")
