"""The command line: one entry point, to which each package adds its commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from backsweep import __version__, compile_ahead, demo
from backsweep.agent.session import cli as trainer_cli
from backsweep.inspection import cli as inspection_cli
from backsweep.lab import cli as lab_cli
from backsweep.lab.report import cli as report_cli
from backsweep.tasks import cli as tasks_cli
from backsweep.view import cli as view_cli

EXTRAS = {
    "torch": "train",
    "tyro": "train",
    "rich": "train",
    "PIL": "train",
    "matplotlib": "report",
    "minari": "minari",
    "ale_py": "atari",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "ray": "ray",
}
"""Modules that a plain installation lacks, and the extra that installs each."""


class HelpWithDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Adds the default to the help of each option that has one and does not say it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if "default:" in (action.help or "") or action.default in (None, ()) or action.default is False:
            return action.help
        return super()._get_help_string(action)


class Parser(argparse.ArgumentParser):
    """A parser whose help has defaults; so have those of its commands, which are of the same class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpWithDefaults, **options)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with the commands of every package."""
    parser = Parser(
        prog="backsweep",
        description="Experience replay for value-based deep RL that plans on the graph of stored transitions.",
    )
    parser.add_argument("--version", action="version", version=f"backsweep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (demo, tasks_cli, inspection_cli, trainer_cli, view_cli, lab_cli, report_cli, compile_ahead):
        module.add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Invalid arguments and unusable files give a message and exit code 2, not a traceback."""
    parser = build_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    options = parser.parse_args(arguments)
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("backsweep: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the pipe has stopped
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains as it flushes
        return 141
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("BACKSWEEP_DEBUG"):
            raise
        print(f"backsweep: {_explained(error, getattr(options, 'extra', None))}", file=sys.stderr)
        print("(set BACKSWEEP_DEBUG=1 to see where it happened)", file=sys.stderr)
        return 2
    return code


def _explained(error: Exception, whole: str | None) -> str:
    """Return an error's message; for a module that an extra installs, say which.

    `whole` is the extra that installs all that the command needs, where that is more than one.
    """
    module = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if module not in EXTRAS:
        return str(error)
    return f"this command needs {module}, which is not installed: pip install 'backsweep[{whole or EXTRAS[module]}]'"


if __name__ == "__main__":
    sys.exit(main())
