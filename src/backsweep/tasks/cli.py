"""The commands `backsweep tasks` and `backsweep tasks show TASK`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from backsweep.tasks.pictures import sheet, task_pictures, write_png
from backsweep.tasks.registry import TASKS, find_task


def add_commands(subparsers: Any) -> None:
    """Add `tasks` to the subparsers of a command line."""
    tasks = subparsers.add_parser(
        "tasks",
        help="list the tasks, or draw some levels of one",
        description="List the tasks; with `show TASK`, draw some levels of one.",
    )
    tasks.set_defaults(run=list_tasks)
    commands = tasks.add_subparsers(title="commands", metavar="COMMAND")
    show = commands.add_parser("show", help="write a PNG of some levels of a task")
    show.add_argument("task", help="a task id, such as minigrid/doorkey")
    show.add_argument("--out", type=Path, help="the file to write; by default named after the task")
    show.add_argument("--levels", type=int, default=6, help="number of levels")
    show.add_argument("--seed", type=int, default=0, help="seed of the levels")
    show.set_defaults(run=show_task)


def list_tasks(arguments: argparse.Namespace) -> int:
    """Print the table of tasks."""
    del arguments
    rows = [("task", "observation", "actions", "step limit", "return", "steps with --settings paper", "what it is")]
    for task in TASKS.values():
        bounds = task.return_bounds
        rows.append(
            (
                task.id,
                task.observation,
                str(len(task.action_names)),
                str(task.step_limit),
                "unbounded" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}",
                f"{task.training.budget:,}",
                task.summary,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip())
    print("Other sizes: nchain-N, sokoban/HEIGHTxWIDTH-BOXES.")
    return 0


def show_task(arguments: argparse.Namespace) -> int:
    """Write a PNG of some levels of a task."""
    task = find_task(arguments.task)
    path = arguments.out or Path(task.id.replace("/", "-") + ".png")
    write_png(path, sheet(task_pictures(task, arguments.levels, arguments.seed)))
    print(path)
    return 0
