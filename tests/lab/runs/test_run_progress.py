"""What `experiment run` shows while it runs, and what it says at the end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from backsweep.lab.runs.jobs import Job
from backsweep.lab.runs.progress import LINE_EVERY, LOOK_EVERY, JobProgress, JobWatch, RunWatch

DOORKEY = {"task": "minigrid/doorkey", "task_options": {}, "settings": "paper"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fleet(root: Path, name: str, runs: int = 2, steps: int = 1000, **more: Any) -> Job:
    names = [f"{name}-{run}" for run in range(runs)]
    order = {"kind": "train", "configs": dict.fromkeys(names, DOORKEY)}
    return Job(name, order, runs * steps, runs, watched=[root / each / "records.jsonl" for each in names], **more)


def write(job: Job, step: int, probe_q: float = 0.0, run: int = 0, finished: bool = False) -> None:
    path = job.watched[run]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"kind": "training", "step": step}, {"kind": "evaluation", "step": step, "probe_q": probe_q}]
    with open(path, "a") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    if finished:
        (path.parent / "finished.json").write_text("{}")


def plain(jobs: list[Job], clock: Clock) -> tuple[JobProgress, io.StringIO]:
    text = io.StringIO()
    return JobProgress(jobs, Console(file=text, width=200), clock), text


def test_a_run_is_read_on_from_where_it_was_left(tmp_path: Path) -> None:
    job = fleet(tmp_path, "a", runs=1)
    watch = RunWatch(job.watched[0], DOORKEY)
    watch.look()
    assert (watch.step, watch.finished, watch.diverged) == (0, False, False)
    write(job, 100, 300.0)
    with open(job.watched[0], "ab") as file:
        file.write(b'{"kind":"evaluation","step":900,"probe_q":5000')  # not whole yet
    watch.look()
    assert (watch.step, watch.diverged) == (100, False)
    with open(job.watched[0], "ab") as file:
        file.write(b".5}\n")
    watch.look()
    assert (watch.step, watch.diverged) == (900, True)


def test_a_run_that_begins_again_counts_from_there(tmp_path: Path) -> None:
    job = fleet(tmp_path, "a", runs=1)
    write(job, 700)
    watch = JobWatch(job)
    assert (watch.step, watch.begun_at) == (700, 0)
    job.watched[0].write_text("")
    watch.look()
    write(job, 100)
    watch.look()
    assert watch.share == pytest.approx(0.1)


def test_values_below_the_worst_return_diverged_too(tmp_path: Path) -> None:
    job = fleet(tmp_path, "a")
    write(job, 100, -359.0)
    write(job, 100, -361.0, run=1)  # an episode costs 360 at the most
    assert [run.diverged for run in JobWatch(job).runs] == [False, True]


def test_without_a_terminal_there_is_a_line_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    jobs = [fleet(tmp_path, "a"), fleet(tmp_path, "b")]
    progress, text = plain(jobs, clock)
    with progress:
        for second in range(1, int(2 * LINE_EVERY) + 1):
            clock.now = 1000.0 + second
            if second == 30:
                write(jobs[0], 500)
            if second == 90:
                write(jobs[0], 1000, 4000.0, finished=True)
                progress.ended(jobs[1], 0, 80.0)
            progress.show(jobs)
    lines = text.getvalue().splitlines()
    assert lines == [
        "0 of 2 processes done, 0 of 4 runs, 12% of 4,000 steps, 8 steps/s, about 7 min left, no values diverged",
        "[1/2] b: done after 80 s",
        "1 of 2 processes done, 1 of 4 runs, 75% of 4,000 steps, 8 steps/s, about 2 min left, values diverged in 1 run",
    ]


def test_on_a_terminal_there_is_a_table_with_a_row_for_each_process(tmp_path: Path) -> None:
    clock = Clock()
    jobs = [fleet(tmp_path, "left half"), fleet(tmp_path, "right half"), Job("coverage seed 100", {"kind": "study"}, 5)]
    for job in jobs[:2]:  # names may be longer than the terminal is wide
        job.name += ": minigrid/doorkey, minigrid/unlock; 10 variants; seeds 100 to 109; and so on and on and on"
    write(jobs[0], 1000, finished=True)
    write(jobs[1], 500, 9999.0)
    text = io.StringIO()
    progress = JobProgress(jobs, Console(file=text, force_terminal=True, width=100), clock)
    with progress:
        clock.now += LOOK_EVERY
        progress.show(jobs)
        shown = text.getvalue()
    for name, share, runs in (("left half", "50%", "1/2"), ("right half", "25%", "0/2")):
        (row,) = [line for line in shown.splitlines() if name in line]
        assert share in row
        assert runs in row
    (row,) = [line for line in shown.splitlines() if "coverage seed 100" in line]
    assert "%" not in row
    assert "1 of 4 runs" in shown
    assert "values diverged in 1 run" in " ".join(shown.split())


def test_the_summary_says_what_was_made_and_what_comes_next(tmp_path: Path) -> None:
    clock = Clock()
    jobs = [fleet(tmp_path, "a", resumed=True), fleet(tmp_path, "b"), Job("coverage seed 100", {"kind": "study"}, 5)]
    write(jobs[0], 400)
    progress, _ = plain(jobs, clock)
    with progress:
        clock.now += 100.0
        for run in range(2):
            write(jobs[0], 1000, run=run, finished=True)
        write(jobs[1], 300, -5000.0)
        progress.ended(jobs[0], 0, 100.0)
        progress.ended(jobs[1], 1, 100.0)
        progress.ended(jobs[2], 0, 100.0)
    assert progress.summary(Path("made")) == [
        "2 of 4 runs finished, 1,900 steps in 2 min, 19 a second",
        "1 of 1 studies done in 2 min",
        f"1 run with values outside the bounds of returns: {tmp_path / 'b-0'}",
        "next: 'backsweep report made --out report' makes a page with verdicts and curves",
        "      'backsweep experiment pack made --results KEPT' keeps what such a page needs",
    ]


def test_nothing_done_has_no_next_step(tmp_path: Path) -> None:
    jobs = [fleet(tmp_path, "a")]
    progress, text = plain(jobs, Clock())
    with progress:
        progress.ended(jobs[0], 130, 1.0)
        progress.show([])
    assert "a: stopped" in text.getvalue()
    assert progress.summary(tmp_path) == ["0 of 2 runs finished, 0 steps in 0 s"]
