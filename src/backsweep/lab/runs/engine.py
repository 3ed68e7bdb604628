"""Runs jobs on the cores of a machine, each in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from backsweep.lab.runs.jobs import Job
from backsweep.lab.runs.progress import JobProgress
from backsweep.signals import HANGUP, endings, handling, leave_terminal

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PATIENCE = 0.2


@dataclass(frozen=True)
class Failure:
    """A job that failed."""

    job: Job
    code: int
    log: Path

    def tail(self, lines: int = 15) -> str:
        """Return the end of its log."""
        try:
            text = self.log.read_text(errors="replace").splitlines()
        except OSError as error:
            return f"(its log cannot be read: {error})"
        return "\n".join(text[-lines:])


@dataclass
class Running:
    """A job and its process."""

    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    threads: int
    since: float


def run_jobs(
    jobs: list[Job], logs: Path, workers: int, progress: JobProgress, cores: int = 1
) -> tuple[list[Failure], bool]:
    """Do all jobs, `workers` at a time; return those that failed, and whether it was interrupted.

    Fleets share the `cores`: each steps its runs with its share of threads; networks use one thread.

    A failing job does not stop the others. Ctrl-C, SIGTERM and a closed terminal stop every job cleanly: training
    writes a checkpoint, from which the same command resumes.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting, failures = list(jobs), []
    active: list[Running] = []
    free = shares_of(cores, max(1, min(workers, len(jobs))))
    interrupted = False
    with progress, terminated_like_interrupted():
        try:
            while waiting or active:
                while waiting and free:
                    active.append(_start(waiting.pop(0), logs, free.pop(0)))
                for entry in [entry for entry in active if entry.process.poll() is not None]:
                    active.remove(entry)
                    free.append(entry.threads)
                    code = entry.process.returncode
                    progress.ended(entry.job, code, time.monotonic() - entry.since)
                    if code:
                        failures.append(Failure(entry.job, code, entry.log))
                progress.show([entry.job for entry in active])
                time.sleep(PATIENCE)
        except KeyboardInterrupt:
            interrupted = True
        finally:  # after any other error too: the jobs have their own process groups
            for entry in active:
                if entry.process.poll() is None:
                    entry.process.send_signal(signal.SIGTERM)
            for entry in active:
                entry.process.wait()
    return failures, interrupted


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, and the end of the terminal, raise KeyboardInterrupt.

    The jobs have their own process groups and would continue without us.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number == HANGUP:
            leave_terminal()
        raise KeyboardInterrupt

    with handling(endings(), interrupt):
        yield


def shares_of(cores: int, workers: int) -> list[int]:
    """Return the number of cores of each worker: all cores, divided evenly, at least one each."""
    return [max(1, cores // workers + (worker < cores % workers)) for worker in range(workers)]


def _start(job: Job, logs: Path, threads: int) -> Running:
    log = logs / job.log_name
    # If this process is killed, its jobs stop as if interrupted; otherwise the next attempt would meet them.
    order = {**job.order, "parent": os.getpid(), "parent_lost": signal.SIGTERM}
    return Running(job, worker_process(order, log, job.runs, threads), log, threads, time.monotonic())


def worker_process(order: dict[str, Any], log: Path, runs: int, threads: int) -> subprocess.Popen[bytes]:
    """Start a process that carries out an order and writes to a log."""
    environment: dict[str, Any] = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
    if runs > 1:
        environment["NUMBA_NUM_THREADS"] = str(threads)
    command = [sys.executable, "-m", "backsweep.lab.runs.worker", json.dumps(order)]
    with open(log, "ab") as file:
        # Its own process group: Ctrl-C reaches it once, through this process.
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
