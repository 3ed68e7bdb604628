"""The command `backsweep inspect ENV`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from backsweep.inspection.inspect import inspect_env

EPILOG = """'repeat' is the share of steps that led to a state seen before, 'agree' the share that led where most steps
with the same state and action led. Nothing is trained or written."""


def add_commands(subparsers: Any) -> None:
    """Add `inspect` to the subparsers of a command line."""
    command = subparsers.add_parser(
        "inspect",
        help="tell, before any training, whether graph methods can help in an environment",
        description="Play random steps and report whether states repeat, which ends were found, and what to use.",
        epilog=EPILOG,
    )
    command.add_argument("env", metavar="ENV", help="a task such as minigrid/doorkey, or a Gymnasium id")
    command.add_argument("--steps", type=int, default=20_000, help="random steps to play")
    command.add_argument("--seed", type=int, default=0, help="seed of the random steps")
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.set_defaults(run=inspect_command)


def inspect_command(arguments: argparse.Namespace) -> int:
    """Inspect an environment and print the result."""
    try:
        found = inspect_env(arguments.env, arguments.steps, arguments.seed)
    except TypeError as error:  # observations of a kind that cannot be stored
        raise ValueError(f"{arguments.env}: {error}") from error
    print(json.dumps(found.to_json(), indent=2) if arguments.json else found)
    return 0
