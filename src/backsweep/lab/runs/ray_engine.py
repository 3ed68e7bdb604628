"""Jobs as tasks of a Ray cluster, each with some cores and a share of a GPU.

If a task's node dies or its process is killed, the task restarts on another node, where the run resumes from its last
checkpoint in the results folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backsweep.lab.runs.engine import Failure, terminated_like_interrupted, worker_process
from backsweep.lab.runs.jobs import Job, resume_folder
from backsweep.lab.runs.progress import JobProgress
from backsweep.lab.runs.remote_folder import RemoteFolder, is_url, newest_state
from backsweep.run_files import FINISHED, FLEET

LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Assignment:
    """A job for a node. The paths in its order begin with `root`, the driver's results folder."""

    order: dict[str, Any]
    root: str
    results: str
    """The node's results folder: the same path, or a URL."""
    log_name: str
    runs: int
    threads: int


def carry_out(assignment: Assignment) -> int:
    """Run an assignment on this node and return the exit code of its process.

    A job that was started before, here or on a lost node, resumes from its last checkpoint.
    """
    order = assignment.order
    if not is_url(assignment.results):
        log = Path(assignment.results, "logs", assignment.log_name)
        return _run(order, log, assignment, lambda: None)
    with tempfile.TemporaryDirectory(prefix="backsweep-") as scratch:
        remote = RemoteFolder(assignment.results, Path(scratch))
        place = order["file"] if order["kind"] == "study" else order["folder"]
        name = Path(place).relative_to(assignment.root).as_posix()
        moved = {"file" if order["kind"] == "study" else "folder": str(Path(scratch, name))}
        if order["kind"] != "study":
            remote.pull(name, checkpoints=True)
        sent = newest_state(Path(scratch, name))

        def send_checkpoints() -> None:
            nonlocal sent
            if order["kind"] != "study" and (now := newest_state(Path(scratch, name))) != sent:
                remote.push(name)
                sent = now

        try:
            return _run({**order, **moved}, Path(scratch, "logs", assignment.log_name), assignment, send_checkpoints)
        finally:
            if order["kind"] != "study":
                remote.push(name)
            elif Path(scratch, name).exists():
                remote.push_file(name)
            remote.push_file(f"logs/{assignment.log_name}")


def _run(order: dict[str, Any], log: Path, assignment: Assignment, look: Callable[[], None]) -> int:
    """Run the worker to its end; when cancelled, let it write a checkpoint first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # The worker dies with its parent, so that a retry never overlaps with it.
    order = {**order, "again": True, "parent": os.getpid(), "parent_lost": signal.SIGKILL}
    process = worker_process(order, log, assignment.runs, assignment.threads)
    try:
        while process.poll() is None:
            time.sleep(LOOK_EVERY / 5)
            look()
        return process.returncode
    except BaseException:
        return _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait()
    return process.returncode


PATIENCE = 0.5
WAITING = 2
"""Tasks queued beyond the cluster's capacity, so that it can start the next one at once, or scale up."""
LOST = 137
"""The exit code of a job whose process or node was lost: that of a killed process."""


@dataclass(frozen=True)
class Resources:
    """What each job requests, and how often it is retried."""

    cores: float = 1.0
    gpus: float = 0.0
    retries: int = 3

    def check(self) -> None:
        """Raise an error that names the invalid option."""
        for name, least in (("cores", 0.0), ("gpus", -1e-9)):
            value = getattr(self, name)
            if not least < value < 1e6:
                raise ValueError(f"--{name} must be above {max(least, 0):g}, got {value}")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ValueError(f"--gpus must be a part of one GPU or a whole number, got {self.gpus}")
        if self.retries < 0:
            raise ValueError(f"--retries must be 0 or more, got {self.retries}")


@dataclass
class Cluster:
    """A Ray cluster, its results folder and the resources of a job."""

    results: str
    """A folder that all nodes see under this path, or a URL."""
    root: Path
    """The folder on this machine: the same one, or a copy without checkpoints."""
    resources: Resources = field(default_factory=Resources)
    remote: RemoteFolder | None = None

    def slots(self) -> int:
        """Return how many jobs the present nodes can run at a time."""
        import ray

        ask: Any = ray.cluster_resources
        there: dict[str, float] = ask()
        wanted = {"CPU": self.resources.cores, "GPU": self.resources.gpus}
        return int(min(there.get(name, 0.0) / amount for name, amount in wanted.items() if amount > 0))

    def submit(self, job: Job) -> Any:
        """Submit a job."""
        import ray

        task: Any = ray.remote(carry_out).options(
            num_cpus=self.resources.cores, num_gpus=self.resources.gpus, max_retries=0, name=job.name[:100]
        )
        threads = max(1, int(self.resources.cores))
        return task.remote(Assignment(job.order, str(self.root), self.results, job.log_name, job.runs, threads))

    def fetch(self, job: Job) -> None:
        """Copy a job's results from a remote folder; nothing to do for a shared one."""
        if self.remote is None:
            return
        study = job.order["kind"] == "study"
        place = Path(job.order["file"] if study else job.order["folder"])
        self.remote.pull(place.relative_to(self.root).as_posix(), checkpoints=False)
        self.remote.pull(f"logs/{job.log_name}", checkpoints=False)


@contextlib.contextmanager
def connected(address: str | None, results: str, scratch: Path, resources: Resources) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine, and prepare the results folder."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("--engine ray needs Ray: pip install 'backsweep[ray]'") from error
    resources.check()
    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
        except ConnectionError as error:
            raise ValueError(f"--address: there is no Ray cluster at {address!r} ({error})") from error
    try:
        if not is_url(results):
            root = Path(results).absolute()
            yield Cluster(str(root), root, resources)
            return
        remote = RemoteFolder(results, scratch)
        remote.pull("", checkpoints=False)
        yield Cluster(results, scratch, resources, remote)
    finally:
        if started_here:
            ray.shutdown()


def run_jobs_on_ray(
    jobs: list[Job], cluster: Cluster, progress: JobProgress, most: int | None = None
) -> tuple[list[Failure], bool]:
    """Run all jobs on a cluster, `most` at a time; return those that failed, and whether it was interrupted."""
    waiting = list(jobs)
    failures: list[Failure] = []
    running: dict[Any, tuple[Job, float]] = {}
    tries: dict[int, int] = {}
    for job in jobs:
        _clear_stale(job, cluster)
    with progress, terminated_like_interrupted():
        try:
            while waiting or running:
                limit = cluster.slots() + WAITING if most is None else most
                while waiting and len(running) < max(1, limit):
                    job = waiting.pop(0)
                    running[cluster.submit(job)] = job, time.monotonic()
                for reference in _ended(running, PATIENCE):
                    job, since = running.pop(reference)
                    code = _code_of(reference)
                    if _was_killed(code) and tries.get(id(job), 0) < cluster.resources.retries:
                        tries[id(job)] = tries.get(id(job), 0) + 1
                        waiting.insert(0, job)
                        continue
                    _note(job, code, since, cluster, progress, failures)
                progress.show([job for job, _ in running.values()])
        except KeyboardInterrupt:
            _cancel(running, cluster)
            return failures, True
    return failures, False


def _note(job: Job, code: int, since: float, cluster: Cluster, progress: JobProgress, failures: list[Failure]) -> None:
    cluster.fetch(job)
    progress.ended(job, code, time.monotonic() - since)
    if code:
        failures.append(Failure(job, code, cluster.root / "logs" / job.log_name))


def _ended(running: dict[Any, Any], seconds: float) -> list[Any]:
    import ray

    ended: list[Any] = ray.wait(list(running), num_returns=len(running), timeout=seconds)[0] if running else []
    return ended


def _code_of(reference: Any) -> int:
    """Return a job's exit code, that of a killed process if its node or process was lost."""
    import ray

    try:
        return int(ray.get(reference))
    except (ray.exceptions.RayTaskError, ray.exceptions.TaskCancelledError):
        raise
    except ray.exceptions.RayError:
        return LOST


def _was_killed(code: int) -> bool:
    """Return whether a job was killed, rather than failed."""
    return code < 0 or code > 128


def _clear_stale(job: Job, cluster: Cluster) -> None:
    """Remove unfinished runs behind a URL that a job restarts from the beginning.

    A job in a shared folder removes them itself, under their lock. Behind a URL there are no locks, so what another
    command has sent there since the job was planned is fetched first: it may be a checkpoint, or the end of the run.
    """
    if cluster.remote is None:
        return
    for place in map(Path, job.order.get("removed", [])):
        session = place.parent if (place.parent / FLEET).exists() else place
        cluster.remote.pull(session.relative_to(cluster.root).as_posix(), checkpoints=False)
        if not (place / FINISHED).exists() and resume_folder(place) is None:
            cluster.remote.remove(place.relative_to(cluster.root).as_posix())
    job.order["removed"] = []


def _cancel(running: dict[Any, tuple[Job, float]], cluster: Cluster) -> None:
    """Ask every job to stop, and wait until each has written its checkpoint."""
    import ray

    for reference in running:
        ray.cancel(reference, force=False)
    for reference, (job, _) in running.items():
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(reference)
        with contextlib.suppress(OSError):
            cluster.fetch(job)
