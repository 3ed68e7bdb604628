"""The whole campaign of attacks, with new random seeds each time; `make torture`.

    python tests/torture.py --minutes 10
    python tests/torture.py --goals --record benchmarks/results/torture.json --page docs/reliability.md

Every attack gets the same share of the time, or goes on until it was tried as often as its goal says, each round in a
process of its own, so that one that dies or hangs is a failure like any other. A record is written after every round
and added to by later calls, so that a campaign may be cut short. Prints a table of what was tried and what failed; a
failure comes with the seed that shows it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # also in processes that are spawned

# As for the tests; numba reads it when it is imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "kernels"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The process that rounds are forked from finds modules by this alone.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))

from attacks import ATTACKS
from backsweep.lab.report.marked import rewrite_between

PATIENCE = 900.0
GOALS = {
    "calls compared with a plain model, small": 20_000,
    "calls compared with a plain model, long": 1_000_000,
    "calls that make no sense": 20_000,
    "kill -9 while saving": 1_000,
    "runs stopped and resumed, the same records": 200,
    "fleets stopped and resumed, the same records": 50,
    "damaged files": 5_000,
    "crafted folders": 1_000,
    "saves on a full disk": 1_000,
    "calls from four threads, with forks": 500_000,
    "interrupts while adding": 10_000,
    "adds, memory flat": 100_000_000,
    "kernel caches that another user got to first": 1_000,
}
"""How often each attack is tried in a whole campaign."""
BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"


@dataclass
class Score:
    """What came of one attack."""

    rounds: int = 0
    tried: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def play(name: str, seed: int, answer: Any) -> None:
    """Carry out one round, and send how many tries it was, or what went wrong."""
    try:
        with tempfile.TemporaryDirectory(prefix="backsweep-") as folder:
            answer.send(ATTACKS[name](random.Random(seed), Path(folder)))
    except BaseException:
        answer.send(traceback.format_exc())


def one_round(name: str, seed: int, context: Any) -> int | str:
    """Carry out one round in a process of its own."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=play, args=(name, seed, theirs))
    process.start()
    theirs.close()
    result: int | str = "it hung"
    if ours.poll(PATIENCE if "TORTURE_ADDS" not in os.environ else 20 * PATIENCE):
        try:
            result = ours.recv()
        except EOFError:
            process.join()
            result = f"the process died with exit code {process.exitcode}"
    process.kill()
    process.join()
    return result


def attack(name: str, score: Score, draw: random.Random, context: Any) -> None:
    """Carry out one round and take down what came of it."""
    own = draw.randrange(2**32)
    began = time.monotonic()
    result = one_round(name, own, context)
    score.seconds += time.monotonic() - began
    score.rounds += 1
    if isinstance(result, int):
        score.tried += result
    else:
        score.failures.append(f"{name}, seed {own}: {result}")
        print(score.failures[-1], file=sys.stderr, flush=True)


def campaign(options: argparse.Namespace, scores: dict[str, Score]) -> None:
    """Attack for the time that is given, at least once each, or until the goals are reached."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attacks", "warm_attacks"])
    draw = random.Random(options.seed)
    for name in options.only:
        score = scores.setdefault(name, Score())
        deadline = time.monotonic() + 60 * options.minutes / len(options.only)
        first = True
        while score.tried < GOALS[name] if options.goals else first or time.monotonic() < deadline:
            attack(name, score, draw, context)
            first = False
            if options.record is not None:
                write_record(options.record, scores)
        print(f"{name}: {score.tried:,} tried, {len(score.failures)} failed", flush=True)


def write_record(path: Path, scores: dict[str, Score]) -> None:
    """Write down what was tried so far, with date and machine."""
    own = {name: asdict(score) for name, score in scores.items()}
    text = json.dumps({"date": time.strftime("%Y-%m-%d"), "machine": machine(), "attacks": own}, indent=1)
    path.with_suffix(".tmp").write_text(text + "\n")
    path.with_suffix(".tmp").replace(path)


def read_record(path: Path | None) -> dict[str, Score]:
    """Return what was tried before."""
    if path is None or not path.exists():
        return {}
    return {name: Score(**own) for name, own in json.loads(path.read_text())["attacks"].items()}


def machine() -> str:
    """Say what this machine is."""
    with open("/proc/cpuinfo") as lines:
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "processor")
    system = f"{platform.system()} {platform.machine()}"
    return f"{processor}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def table(scores: dict[str, Score]) -> str:
    """Return the scores as Markdown, with date and machine."""
    lines = ["| attack | tried | failed |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {scores[name].tried:,} | {len(scores[name].failures)} |" for name in ATTACKS if name in scores
    ]
    minutes = sum(score.seconds for score in scores.values()) / 60
    return "\n".join([*lines, "", f"Run on {time.strftime('%Y-%m-%d')} for {minutes:.0f} minutes: {machine()}."])


def main() -> int:
    """Attack, print the table, and put it on a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--goals", action="store_true", help="go on until each attack was tried as often as it should")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--record", type=Path, help="add to this record, which is written after every round")
    parser.add_argument("--page", type=Path, help="write the table between the marked lines of this page")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    if options.goals:
        os.environ.setdefault("TORTURE_ADDS", str(GOALS["adds, memory flat"]))  # in one process
        os.environ.setdefault("TORTURE_LONGER", "5")
    scores = read_record(options.record)
    campaign(options, scores)
    text = table(scores)
    print("\n" + text)
    if options.page is not None:
        rewrite_between(options.page, BEGIN, END, text)
    return 1 if any(score.failures for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
