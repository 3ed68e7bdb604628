"""The trainer's commands: train, resume, evaluate and watch.

`train` takes every field of `RunConfig` and `SessionConfig` as an option. Its defaults are those of the given task and
method, so that `backsweep train minigrid/doorkey --help` shows what would run.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from backsweep import agent
from backsweep.tasks.gymnasium_env import is_gymnasium_id

if TYPE_CHECKING:
    from backsweep.agent import RunConfig, RunResult, SessionConfig

# An option that no argument can begin with: everything after the command is passed on unchanged.
PASS_ON = "\x00"
TRAIN_HELP = """usage: backsweep train TASK [OPTIONS]

Train an agent. TASK is one of `backsweep tasks`, such as minigrid/doorkey, or a Gymnasium id with discrete actions
whose observations are one array, such as CartPole-v1 (Dicts are joined, text is left out). Settings that are not given
are those of the task and the method.

  backsweep train minigrid/doorkey --steps 200_000
  backsweep train CartPole-v1 --method per --seed 3
  backsweep train minigrid/doorkey --help        every option with its default for that task

the most used options:
  --steps N             environment steps of the run
  --seed N              root of all randomness (default: 0)
  --method METHOD       graph (the default), uer, per, ter, n-step, ...: docs/training.md has a table
  --settings WHOSE      ours (the default), paper or released
  --num-envs N          environments stepped in parallel (default: 1)
  --device DEVICE       cpu (the default) or cuda
  --threads N           threads of torch (default: 1)
  --folder FOLDER       the run's folder (default: runs/TASK/METHOD-seedSEED)
  --live                serve a page that shows the run while it trains
  --tensorboard         also write TensorBoard files

Ctrl-C writes a checkpoint; `backsweep resume FOLDER` goes on from it. `backsweep resume FOLDER --steps N` trains a
finished run for longer, to N steps in all.
"""
ALLOW_IMPORT = "let an environment named 'module:Id' import its module, which runs its code"


def add_commands(subparsers: Any) -> None:
    """Add the trainer's commands to a parser; each sets `run`, a function from the parsed arguments to an exit code."""
    training = subparsers.add_parser(
        "train", help="train an agent on a task with a replay method", add_help=False, prefix_chars=PASS_ON
    )
    training.add_argument("arguments", nargs="*")
    training.set_defaults(run=lambda parsed: train_command(parsed.arguments))

    resuming = subparsers.add_parser("resume", help="resume a run from its last checkpoint, or train it for longer")
    resuming.add_argument("folder", type=Path, help="the folder of the run or fleet")
    resuming.add_argument(
        "--steps",
        type=_steps,
        metavar="N",
        help="environment steps in all: trains a finished or interrupted run for longer (default: as it was started)",
    )
    resuming.add_argument("--threads", type=int, default=1, help="threads of torch")
    resuming.add_argument("--device", default="cpu", help="device of the networks: cpu or cuda")
    engines = ("auto", "compiled", "plain")
    resuming.add_argument("--engine", choices=engines, default="auto", help="how runs are stepped")
    resuming.add_argument("--fleet-threads", type=int, help="threads that step runs (default: one per core)")
    resuming.add_argument("--groups", type=int, default=2, help="groups of runs that alternate on the device")
    resuming.add_argument("--observations-per-run", type=int, help="distinct observations of a run on the device")
    resuming.add_argument("--checkpoint-interval", type=int, default=50_000, help="steps between checkpoints")
    resuming.add_argument("--live", action="store_true", help="serve a live page of the run on 127.0.0.1")
    resuming.add_argument("--live-port", type=int, default=0, help="the port of that page (default: a free one)")
    resuming.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files")
    resuming.add_argument("--wandb", metavar="PROJECT", help="also log to this Weights & Biases project")
    resuming.add_argument("--quiet", action="store_true", help="print only errors")
    resuming.add_argument("--allow-import", action="store_true", help=ALLOW_IMPORT)
    resuming.set_defaults(run=resume_command)

    evaluating = subparsers.add_parser("evaluate", help="evaluate a run's agent")
    evaluating.add_argument("folder", type=Path, help="the run's folder")
    evaluating.add_argument("--episodes", type=int, help="number of episodes (default: as in the run's evaluations)")
    evaluating.add_argument("--random-chance", type=float, help="probability of a random action (default: the run's)")
    evaluating.add_argument("--json", action="store_true", help="print the record as JSON")
    evaluating.add_argument("--allow-import", action="store_true", help=ALLOW_IMPORT)
    evaluating.set_defaults(run=evaluate_command)

    watching = subparsers.add_parser("watch", help="write a GIF of an episode of a run's agent")
    watching.add_argument("folder", type=Path, help="the run's folder")
    watching.add_argument("--out", type=Path, help="output file (default: episode.gif in the run's folder)")
    watching.add_argument("--episode", type=int, default=0, help="which episode to play; each has its own level")
    watching.add_argument("--random-chance", type=float, default=0.0, help="probability of a random action")
    watching.add_argument("--fps", type=int, default=8, help="steps per second")
    watching.add_argument("--allow-import", action="store_true", help=ALLOW_IMPORT)
    watching.set_defaults(run=watch_command)


def train_command(arguments: Sequence[str]) -> int:
    """Parse the options of `train`, and train."""
    from backsweep.agent.session.folder import SINGLE, default_folder, usual_folder
    from backsweep.agent.session.training import start

    if arguments and set(arguments) <= {"-h", "--help"}:
        print(TRAIN_HELP, end="")
        return 0
    config, session = parse_training(arguments)
    folder = default_folder(config) if session.folder is None else session.folder
    if session.folder is None and folder != usual_folder(config) and not session.quiet:
        print(f"{usual_folder(config)} holds an earlier run, so this one goes to {folder.name}", flush=True)
    return _ending(start(folder, {SINGLE: config}, session), session.quiet)


def parse_training(arguments: Sequence[str]) -> tuple[RunConfig, SessionConfig]:
    """Return the configurations that the options of `train` describe."""
    run_config = agent.run_config  # needs torch, and reports it if it is missing
    try:
        import tyro
    except ImportError as error:
        raise ImportError("training from the command line needs tyro: pip install 'backsweep[train]'") from error

    first = argparse.ArgumentParser("backsweep train TASK", add_help=False, allow_abbrev=False)
    for name in ("env", "method", "settings"):
        first.add_argument(f"--{name}")
    first.add_argument("--steps", type=_steps)
    asked, rest = first.parse_known_args(list(arguments))
    task = rest[0] if rest and not rest[0].startswith("-") else None
    if task is None and asked.env is None:
        raise agent.RunError("name a task first, such as minigrid/doorkey, or a Gymnasium id, such as CartPole-v1")
    named = {name: value for name in ("method", "settings", "steps") if (value := getattr(asked, name)) is not None}
    if task is not None and asked.env is not None:
        raise agent.RunError("give either a task or --env, not both")
    if task is not None and is_gymnasium_id(task):
        arguments = [*arguments]
        arguments[arguments.index(task)] = f"--env={task}"
        task, asked.env = None, task
    try:
        defaults = run_config(task, env=asked.env, **named)
    except ValueError as error:
        if not str(error).startswith("unknown task") or "Gymnasium id" in str(error):
            raise
        raise agent.RunError(f"{error} (or give a Gymnasium id, such as CartPole-v1)") from error

    def options(run, session):  # type: ignore[no-untyped-def]
        """Train an agent; the defaults shown are those of this task and method."""
        return run, session

    flat = tyro.conf.arg(name="")
    options.__annotations__ = {
        "run": Annotated[agent.RunConfig, flat],
        "session": Annotated[agent.SessionConfig, flat],
    }
    options.__defaults__ = (defaults, agent.SessionConfig())
    chosen: tuple[RunConfig, SessionConfig] = tyro.cli(options, prog="backsweep train TASK", args=list(arguments))
    return chosen


def _steps(text: str) -> int:
    try:
        return int(text)  # also 20_000
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def resume_command(parsed: argparse.Namespace) -> int:
    """Resume a run."""
    session = {name: value for name, value in vars(parsed).items() if name not in ("folder", "run")}
    return _ending(agent.resume(parsed.folder, **session), parsed.quiet)


def evaluate_command(parsed: argparse.Namespace) -> int:
    """Evaluate a run's agent and print the result."""
    from backsweep.agent.session.evaluation.evaluate import evaluate
    from backsweep.agent.session.watch import Agent

    agent = Agent(parsed.folder, allow_import=parsed.allow_import)
    config = agent.config
    if parsed.random_chance is not None:
        config = dataclasses.replace(config, evaluation_random_chance=parsed.random_chance)
    if parsed.episodes is not None:
        config = dataclasses.replace(config, evaluation_episodes=parsed.episodes)
    record = evaluate(config, agent.values, agent.step)
    if parsed.json:
        print(record.to_json())
        return 0
    for name, value in dataclasses.asdict(record).items():
        if value is not None:
            print(f"{name.replace('_', ' '):>20}  {value:.6g}" if isinstance(value, float) else f"{name:>20}  {value}")
    return 0


def watch_command(parsed: argparse.Namespace) -> int:
    """Write a GIF."""
    from backsweep.agent.session.folder import read_config
    from backsweep.agent.session.watch import film

    read_config(parsed.folder)
    out = parsed.folder / "episode.gif" if parsed.out is None else parsed.out
    total, length = film(
        parsed.folder,
        out,
        episode=parsed.episode,
        random_chance=parsed.random_chance,
        fps=parsed.fps,
        allow_import=parsed.allow_import,
    )
    print(f"{out}: {length} steps, return {total:.6g}")
    return 0


def _ending(results: list[RunResult], quiet: bool) -> int:
    """Print how the runs ended; the exit code differs for finished and stopped runs."""
    from backsweep.agent.session.session import exit_code

    for result in results:
        if result.error is not None:
            print(f"{result.folder}: failed at step {result.step:,}: {result.error}", file=sys.stderr)
        elif quiet:
            continue
        elif result.finished:
            print(f"{result.folder}: finished at step {result.step:,}")
        else:
            print(f"{result.folder}: stopped at step {result.step:,}; 'backsweep resume {result.folder}' resumes it")
    return exit_code(results)
