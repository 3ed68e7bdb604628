"""The whole campaign of attacks, with new random seeds each time; `make torture`.

    python tests/torture.py --minutes 10
    python tests/torture.py --goals --record benchmarks/results/torture.json --page docs/reliability.md

Every attack gets the same share of the time, or, with --goals, the one furthest from its goal is next; only what was
tried with the same code counts. Each round runs in its own process, so that one that dies or hangs is a failure like
any other. A record is written after every round; later campaigns are added to it, each with its date and a digest of
the code. Prints a table of what was tried and what failed; a failure comes with the seed that shows it.
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # also in processes that are spawned

# As for the tests; numba reads it when it is imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "kernels"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import xxhash

from attacks import ATTACKS
from backsweep.lab.report.marked_text import rewrite_between

PATIENCE = 900.0
DEFAULT_MINUTES = 5.0
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
    "made-up runs": 500,
    "saves, loads and copies at the same time": 5_000,
    "folders mixed from two saves": 2_000,
    "forks from three threads": 2_000,
    "interrupts of other calls": 2_000,
    "saves and loads at the limits of the system": 1_000,
    "kernel caches that another user got to first": 1_000,
}
"""How often each attack is tried in a whole campaign."""
MOST_FAILURES = 3
"""An attack that failed so often in a campaign is not tried again."""
IN_MEMORY = Path("/dev/shm")
"""Where rounds keep their files, if it is there. A killed process loses nothing that it has written, whether it is on a
disk or not, and most of the time of a save goes into waiting for the disk."""
BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"


@dataclass
class Score:
    """What came of one attack."""

    rounds: int = 0
    tried: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


@dataclass
class Campaign:
    """One call of this program."""

    began: str
    ended: str
    code: str
    machine: str
    attacks: dict[str, Score] = field(default_factory=dict)


def play(name: str, seed: int, folder: str, answer: Any) -> None:
    """Carry out one round, and send how many tries it was, or what went wrong."""
    try:
        answer.send(ATTACKS[name](random.Random(seed), Path(folder)))
    except BaseException:
        answer.send(traceback.format_exc().replace(f"{Path(__file__).parents[1]}{os.sep}", ""))


def one_round(name: str, seed: int, context: Any) -> int | str:
    """Carry out one round in a process of its own, and remove its files however it ends."""
    place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="backsweep-", dir=place, ignore_cleanup_errors=True) as folder:
        return in_process(name, seed, folder, context)


def in_process(name: str, seed: int, folder: str, context: Any) -> int | str:
    """Carry out one round in a process of its own."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=play, args=(name, seed, folder, theirs))
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


def campaign(options: argparse.Namespace, record: list[Campaign]) -> None:
    """Attack for the time that is given, at least once each, or until the goals are reached."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attacks", "warm_attacks"])
    draw, own = random.Random(options.seed), record[-1].attacks
    for name in in_turn(options, record):
        attack(name, own.setdefault(name, Score()), draw, context)
        if options.record is not None:
            write_record(options.record, record)


def in_turn(options: argparse.Namespace, record: list[Campaign]) -> Iterator[str]:
    """Give the attacks in the order in which they are carried out, until time is up or the goals are reached."""
    own, began = record[-1].attacks, time.monotonic()
    if options.goals:
        while options.minutes is None or time.monotonic() < began + 60 * options.minutes:
            scores = total(of_newest_code(record))
            reached = {name: scores[name].tried / GOALS[name] if name in scores else 0.0 for name in options.only}
            left = [name for name in options.only if reached[name] < 1 and failures(own, name) < MOST_FAILURES]
            if not left:
                return
            yield min(left, key=reached.__getitem__)
        return
    share = 60 * (DEFAULT_MINUTES if options.minutes is None else options.minutes) / len(options.only)
    for name in options.only:
        began = time.monotonic()
        yield name
        while time.monotonic() < began + share and failures(own, name) < MOST_FAILURES:
            yield name
        print(f"{name}: {own[name].tried:,} tried, {failures(own, name)} failed", flush=True)


def failures(scores: dict[str, Score], name: str) -> int:
    """Return how often an attack failed."""
    return len(scores[name].failures) if name in scores else 0


def total(record: list[Campaign]) -> dict[str, Score]:
    """Add up what came of each attack in all campaigns."""
    scores: dict[str, Score] = {}
    for one in record:
        for name, found in one.attacks.items():
            before = scores.get(name, Score())
            scores[name] = Score(
                before.rounds + found.rounds,
                before.tried + found.tried,
                before.seconds + found.seconds,
                before.failures + found.failures,
            )
    return scores


def of_newest_code(record: list[Campaign]) -> list[Campaign]:
    """Return the campaigns of the same code as the last one."""
    return [one for one in record if one.code == record[-1].code]


def write_record(path: Path, record: list[Campaign]) -> None:
    """Write down what was tried so far in all campaigns."""
    record[-1].ended = today()
    text = json.dumps({"campaigns": [asdict(one) for one in record if one.attacks]}, indent=1)
    path.with_suffix(".tmp").write_text(text + "\n")
    path.with_suffix(".tmp").replace(path)


def read_record(path: Path | None) -> list[Campaign]:
    """Return the campaigns before this one."""
    if path is None or not path.exists():
        return []
    record = [Campaign(**one) for one in json.loads(path.read_text())["campaigns"]]
    for one in record:
        one.attacks = {name: Score(**found) for name, found in one.attacks.items()}  # type: ignore[arg-type]
    return record


def code() -> str:
    """Return a digest of the package's source."""
    package = Path(__file__).parent.parent / "src" / "backsweep"
    digest = xxhash.xxh3_64()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return str(digest.hexdigest())


def today() -> str:
    """Return the date."""
    return time.strftime("%Y-%m-%d")


def machine() -> str:
    """Say what this machine is."""
    with open("/proc/cpuinfo") as lines:
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "processor")
    system = f"{platform.system()} {platform.machine()}"
    return f"{processor}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def table(record: list[Campaign]) -> str:
    """Return what came of all campaigns as Markdown, by the state of the code, with dates and machines."""
    record = [one for one in record if one.attacks]
    scores, states = total(record), list(dict.fromkeys(one.code for one in record))
    groups = {"earlier": states[:-2], "last but one": states[-2:-1], "newest code": states[-1:]}
    groups = {title: group for title, group in groups.items() if group}
    titles = ["attack", "goal", *(title for group in groups for title in (group, "failed"))]
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    tried = [total([one for one in record if one.code in group]) for group in groups.values()]
    for name in (name for name in ATTACKS if name in scores):
        own = [found.get(name, Score()) for found in tried]
        numbers = [GOALS[name], *(number for one in own for number in (one.tried, len(one.failures)))]
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
    minutes = sum(score.seconds for score in scores.values()) / 60
    first, last = record[0].began, record[-1].ended
    when = f"on {first}" if first == last else f"from {first} to {last}"
    of_code = "of the same code" if len(states) == 1 else f"of {len(states)} states of the code"
    sums = f"The sum of {len(record)} campaigns {of_code}" if len(record) > 1 else "One campaign"
    machines = "; ".join(dict.fromkeys(one.machine for one in record))
    return "\n".join([*lines, "", f"{sums} {when}, {minutes:.0f} minutes: {machines}."])


def main() -> int:
    """Attack, print the table, and put it on a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help=f"default: {DEFAULT_MINUTES}, or no limit with --goals")
    parser.add_argument("--goals", action="store_true", help="go on until each attack was tried often enough")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--record", type=Path, help="add to this record, which is written after every round")
    parser.add_argument("--page", type=Path, help="write the table between the marked lines of this page")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    # The process that rounds are forked from finds modules by this alone.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    if options.goals:
        os.environ.setdefault("TORTURE_ADDS", str(GOALS["adds, memory flat"]))  # in one process
        os.environ.setdefault("TORTURE_LONGER", "5")
    record = [*read_record(options.record), Campaign(today(), today(), code(), machine())]
    campaign(options, record)
    text = table(record)
    print("\n" + text)
    if options.page is not None:
        rewrite_between(options.page, BEGIN, END, text)
    return 1 if any(score.failures for score in total(of_newest_code(record)).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
