"""One job in a process of its own: `python -m backsweep.experiments.running.worker ORDER`, ORDER being JSON."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any


def work(order: dict[str, Any]) -> int:
    """Carry out an order; return the exit code: 0 done, 1 failed, above 128 stopped by a signal."""
    if order["kind"] == "study":
        from backsweep.experiments.lines import write_lines
        from backsweep.experiments.studies import STUDIES

        records = STUDIES[order["study"]].records(order["seed"], **order["arguments"])
        count = write_lines(Path(order["file"]), records)
        print(f"{order['file']}: {count} records")
        return 0
    return _train(order)


def _train(order: dict[str, Any]) -> int:
    from backsweep.trainer import RunConfig, SessionConfig, resume
    from backsweep.trainer.running import start

    folder = Path(order["folder"])
    session: dict[str, Any] = {"device": order["device"], "quiet": True, "threads": 1}
    if order["kind"] == "resume" and any((folder / "checkpoints").glob("*")):
        results = resume(folder, **session)
    else:
        if order["kind"] == "resume":
            # Killed before its first checkpoint: there is nothing to go on from, so it begins again.
            shutil.rmtree(folder)
        configs = {name: RunConfig.from_json(config) for name, config in order["configs"].items()}
        results = start(folder, configs, SessionConfig(**session))
    for result in results:
        state = "finished" if result.finished else "stopped"
        print(f"{result.folder}: {result.error or state} at step {result.step}")
    if any(result.error is not None for result in results):
        return 1
    stopped = [result.stopped_by for result in results if result.stopped_by is not None]
    if not stopped:
        # What a run needs to go on is as large as its replay, and a finished run does not go on.
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return 128 + stopped[0] if stopped else 0


if __name__ == "__main__":
    sys.exit(work(json.loads(sys.argv[1])))
