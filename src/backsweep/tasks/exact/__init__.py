"""Exact values of the tasks that are small enough to be enumerated."""

from __future__ import annotations

from typing import Any

from backsweep.tasks.exact.model import ExactTask, PolicyReturn
from backsweep.tasks.registry import Task, find_task
from backsweep.tasks.state_graph import StateGraph

__all__ = ["ExactTask", "PolicyReturn", "StateGraph", "exact"]


def exact(task: str | Task, **options: Any) -> ExactTask:
    """Return all states of all levels of an NChain or MiniGrid task, with the task's own options.

    Examples
    --------
    >>> doorkey = exact("minigrid/doorkey")
    >>> doorkey.num_levels, doorkey.num_states, doorkey.num_terminal
    (36, 7056, 198)
    >>> best = doorkey.optimal_values(discount=0.99)
    >>> round(doorkey.expected_return(best).success, 6)
    1.0
    """
    found = find_task(task)
    chosen = found.options(**options)
    if found.kind.states is None:
        raise ValueError(f"{found.id} is too large to enumerate; exact values are for NChain and MiniGrid tasks")
    states, bounds = found.kind.states(chosen), chosen.return_bounds
    assert bounds is not None, "a task with a list of states has bounds"
    return ExactTask(
        task=found.id,
        graph=states.graph(),
        observer=states,
        step_limit=chosen.step_limit,
        return_bounds=bounds,
        random_action_chance=chosen.random_action_chance,
    )
