"""One job in a process of its own: `python -m backsweep.lab.runs.worker ORDER`, ORDER being JSON."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from backsweep.lab.claims.evidence import CONFIG, FINISHED
from backsweep.lab.runs.fleets import FLEET_FILE


def work(order: dict[str, Any]) -> int:
    """Carry out an order; return the exit code: 0 done, 1 failed, above 128 stopped by a signal."""
    if order["kind"] == "study":
        from backsweep.lab.runs.lines import write_lines
        from backsweep.lab.studies.registry import STUDIES

        records = STUDIES[order["study"]].records(order["seed"], **order["arguments"])
        count = write_lines(Path(order["file"]), records)
        print(f"{order['file']}: {count} records")
        return 0
    return _train(order)


def _train(order: dict[str, Any]) -> int:
    from backsweep.agent import RunConfig, SessionConfig, resume
    from backsweep.agent.session.training import start

    folder = Path(order["folder"])
    # What a run needs to go on is as large as its replay, and a finished run does not go on.
    session: dict[str, Any] = {"device": order["device"], "quiet": True, "threads": 1, "final_checkpoint": False}
    session.update(order.get("session", {}))
    if order["kind"] == "resume":
        results = resume(folder, **session)
    else:
        for path in order["removed"]:
            clear_away(Path(path))
        configs = {name: RunConfig.from_json(config) for name, config in order["configs"].items()}
        results = start(folder, configs, SessionConfig(**session))
    for result in results:
        state = "finished" if result.finished else "stopped"
        print(f"{result.folder}: {result.error or state} at step {result.step}")
    if any(result.error is not None for result in results):
        return 1
    stopped = [result.stopped_by for result in results if result.stopped_by is not None]
    return 128 + stopped[0] if stopped else 0


def clear_away(folder: Path) -> None:
    """Remove an unfinished run that begins again, and its fleet's folder if it was the last run there."""
    if not folder.exists() or (folder / FINISHED).exists():
        return
    shutil.rmtree(folder)
    fleet = folder.parent
    if (fleet / FLEET_FILE).exists() and not any(fleet.glob(f"*/{CONFIG}")):
        shutil.rmtree(fleet)


if __name__ == "__main__":
    sys.exit(work(json.loads(sys.argv[1])))
