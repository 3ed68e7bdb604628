"""The questions as data: about graph values, trials on tuning seeds, the paper's claims, and its released code.

Each module defines QUESTIONS; here are all of them, the claims in the paper's order.
"""

from __future__ import annotations

from backsweep.lab.claims.question import Question
from backsweep.lab.claims.questions import (
    graph_values,
    learning,
    more_updates,
    released_code,
    studies,
    trials,
    variations,
    world_model,
)

CLAIMS: tuple[Question, ...] = tuple(
    sorted(
        (*studies.QUESTIONS, *learning.QUESTIONS, *variations.QUESTIONS, *world_model.QUESTIONS),
        key=lambda question: int(question.id[1:]),
    )
)
QUESTIONS: tuple[Question, ...] = (
    *graph_values.QUESTIONS,
    *more_updates.QUESTIONS,
    *trials.QUESTIONS,
    *CLAIMS,
    *released_code.QUESTIONS,
)


def find_question(name: str) -> Question:
    """Return the question called `name` (such as C3), or say which there are."""
    for question in QUESTIONS:
        if question.id.lower() == name.lower():
            return question
    others = ", ".join(question.id for question in QUESTIONS if question.kind != "paper")
    raise ValueError(f"unknown question {name!r}; there are {CLAIMS[0].id} to {CLAIMS[-1].id} and {others}")
