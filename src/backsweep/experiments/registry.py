"""All questions, in the paper's order."""

from __future__ import annotations

from backsweep.experiments.question import Question
from backsweep.experiments.questions import (
    c01_chain_backups,
    c02_chain_values,
    c03_minigrid,
    c04_sokoban,
    c05_sokoban_baselines,
    c06_sokoban_values,
    c07_replay_ratio,
    c08_ratio_values,
    c09_mixing,
    c10_stitching,
    c11_speed,
    c12_random_actions,
    c13_pseudo_terminals,
    c14_ebu_mixing,
    c15_ebu_timeouts,
    c16_dimension,
    c17_dreamer,
    c18_atari,
    c19_diffusion,
    c20_cycles,
    c21_coverage,
    c22_no_repeats,
    c23_lunarlander,
    c24_visits,
)

QUESTIONS: tuple[Question, ...] = tuple(
    module.QUESTION
    for module in (
        c01_chain_backups,
        c02_chain_values,
        c03_minigrid,
        c04_sokoban,
        c05_sokoban_baselines,
        c06_sokoban_values,
        c07_replay_ratio,
        c08_ratio_values,
        c09_mixing,
        c10_stitching,
        c11_speed,
        c12_random_actions,
        c13_pseudo_terminals,
        c14_ebu_mixing,
        c15_ebu_timeouts,
        c16_dimension,
        c17_dreamer,
        c18_atari,
        c19_diffusion,
        c20_cycles,
        c21_coverage,
        c22_no_repeats,
        c23_lunarlander,
        c24_visits,
    )
)


def find_question(name: str) -> Question:
    """Return the question called `name` (such as C3), or say which there are."""
    for question in QUESTIONS:
        if question.id.lower() == name.lower():
            return question
    raise ValueError(f"unknown question {name!r}; there are {QUESTIONS[0].id} to {QUESTIONS[-1].id}")
