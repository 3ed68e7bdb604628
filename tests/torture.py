"""The whole campaign of attacks, with new random seeds each time; `make torture`.

    python tests/torture.py --minutes 10
    python tests/torture.py --minutes 60 --page docs/reliability.md

Every attack gets the same share of the time, each round in a process of its own, so that one that dies or hangs is a
failure like any other. Prints a table of what was tried and what failed; a failure comes with the seed that shows it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # also in processes that are spawned

# As for the tests; numba reads it when it is imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "kernels"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from attacks import ATTACKS

PATIENCE = 300.0
BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"


@dataclass
class Score:
    """What came of one attack."""

    rounds: int = 0
    tried: int = 0
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
    if ours.poll(PATIENCE):
        try:
            result = ours.recv()
        except EOFError:
            process.join()
            result = f"the process died with exit code {process.exitcode}"
    process.kill()
    process.join()
    return result


def campaign(seconds: float, seed: int, names: list[str]) -> dict[str, Score]:
    """Attack for so many seconds in all, and at least once each; return the scores."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attacks"])
    draw, scores = random.Random(seed), {name: Score() for name in names}
    for name, score in scores.items():
        deadline = time.monotonic() + seconds / len(names)
        while score.rounds == 0 or time.monotonic() < deadline:
            own = draw.randrange(2**32)
            result = one_round(name, own, context)
            score.rounds += 1
            if isinstance(result, int):
                score.tried += result
            else:
                score.failures.append(f"{name}, seed {own}: {result}")
                print(score.failures[-1], file=sys.stderr, flush=True)
        print(f"{name}: {score.tried:,} tried, {len(score.failures)} failed", flush=True)
    return scores


def table(scores: dict[str, Score], seconds: float) -> str:
    """Return the scores as Markdown, with date and machine."""
    lines = ["| attack | tried | failed |", "| --- | --- | --- |"]
    lines += [f"| {name} | {score.tried:,} | {len(score.failures)} |" for name, score in scores.items()]
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return "\n".join([*lines, "", f"Run on {time.strftime('%Y-%m-%d')} for {seconds / 60:.0f} minutes: {machine}."])


def main() -> int:
    """Attack, print the table, and put it on a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--page", type=Path, help="write the table between the markers of this page")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    scores = campaign(60 * options.minutes, options.seed, options.only)
    text = table(scores, time.monotonic() - began)
    print("\n" + text)
    if options.page is not None:
        before, rest = options.page.read_text().split(BEGIN)
        options.page.write_text(before + BEGIN + "\n\n" + text + "\n\n" + END + rest.split(END)[1])
    return 1 if any(score.failures for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
