"""The trainer's commands by themselves: python -m backsweep.trainer train ..."""

from __future__ import annotations

import argparse

from backsweep.trainer.cli import add_commands


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m backsweep.trainer", description=__doc__)
    add_commands(parser.add_subparsers(required=True, metavar="COMMAND"))
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
