"""Gymnasium ids for every task in the table: backsweep/DoorKey-v0 and so on."""

from __future__ import annotations

import gymnasium

from backsweep.tasks.registry import TASKS


def register_tasks() -> None:
    """Register every task that is not registered yet; tasks apply their own step limit."""
    for task in TASKS.values():
        if task.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                id=task.gymnasium_id,
                entry_point="backsweep.tasks.make:make_single",
                vector_entry_point="backsweep.tasks.make:make_vector",
                kwargs={"task": task.id},
            )
