"""The session around the training loop: records, evaluations, checkpoints, progress, and a clean stop."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from backsweep.agent.config import SessionConfig
from backsweep.agent.fleet.compiled.runs import NEW_PER_STEP
from backsweep.agent.fleet.engine import Engine
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.memory_budget import ObservationLimits, run_to_drop_here, runs_to_drop
from backsweep.agent.fleet.plain_engine import PlainEngine, retire
from backsweep.agent.fleet.run import Run
from backsweep.agent.session import checkpoint
from backsweep.agent.session.evaluation.evaluate import EvaluationStopped, evaluate_runs
from backsweep.agent.session.folder import RunError, note_session, write_json
from backsweep.agent.session.live import Live
from backsweep.agent.session.progress import Progress
from backsweep.agent.session.records import EvaluationRecord, RecordWriter, ReplayRecord, TimingRecord, TrainingRecord
from backsweep.agent.session.remarks import diverged, noise_changed, remarks, reward_found
from backsweep.record_files import described
from backsweep.run_files import FINISHED
from backsweep.signals import HANGUP, endings, handling, leave_terminal

MOST_STEPS_UNSEEN = 1_000
"""The largest number of steps before the display is updated and signals are handled."""


@dataclass(eq=False)
class RunFiles:
    """A run's folder and its open records."""

    name: str
    """The name of its folder inside the fleet's."""
    shown: str
    """The displayed name."""
    folder: Path
    run: Run
    writer: RecordWriter
    last: EvaluationRecord | None = None
    recorded: int | None = None
    """The step of its last training record."""
    diverged: bool = False
    """Whether the user has been warned that its values diverged."""
    noisy: bool = False
    """Whether the user has been told that outcomes are too noisy to plan."""
    waits_for_reward: bool = False
    """Whether the run was waiting for its first reward when that was last looked at."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    folder: Path
    """The run's folder."""
    step: int
    """Environment steps taken."""
    finished: bool
    """Whether the run reached its last step."""
    evaluation: EvaluationRecord | None
    """The last evaluation, None if there was none."""
    error: str | None = None
    """Why the run failed, None if it did not."""
    stopped_by: int | None = None
    """The signal that stopped it."""


def exit_code(results: Sequence[RunResult]) -> int:
    """Return the exit code of a process: 1 if a run failed, 128 and the signal if one was stopped, else 0."""
    if any(result.error is not None for result in results):
        return 1
    return next((128 + result.stopped_by for result in results if result.stopped_by is not None), 0)


@dataclass
class Session:
    """One session of a fleet: from its start, or from a checkpoint, until it ends or is stopped."""

    folder: Path
    fleet: Fleet
    files: list[RunFiles]
    config: SessionConfig
    progress: Progress
    live: Live | None = None
    """The live page, if one is served."""
    limits: ObservationLimits | None = None
    """Space on the device for each run's observations; None if runs take plain turns."""
    clock: Clock = field(default_factory=Clock)
    stopped_by: int | None = None
    results: list[RunResult] = field(default_factory=list)
    _timed_updates: int = 0
    _timed_steps: int = 0
    _engine: Engine | PlainEngine | None = None
    _some_left: bool = False
    """Whether a run has failed that the newest checkpoint still holds."""

    def run(self) -> list[RunResult]:
        """Run until every run is finished or a signal stops it."""
        fleet = self.fleet
        self._timed_updates, self._timed_steps = fleet.learner.updates, fleet.step
        with self._closing(), self._signals(), self.progress:
            for files in self.files:
                note_session(files.folder, "started" if fleet.step == 0 else "resumed", step=fleet.step)
            for line in remarks(fleet) if fleet.step == 0 else ():
                self.progress.note(line)
            # A checkpoint may have been written at a run's last step, and the process killed before marking it
            # finished; or the evaluation that is due there was given up.
            if fleet.step and self._write_due() and (ended := self._ending()):
                self._finish(ended)
            while fleet.runs and self.stopped_by is None:
                self._move()
                if fleet.runs:
                    self._after_turn()
            if fleet.runs:
                self._checkpoint()
                for files in self.files:
                    note_session(files.folder, "stopped", step=fleet.step, signal=self.stopped_by)
                    self.results.append(
                        RunResult(files.folder, fleet.step, False, files.last, stopped_by=self.stopped_by)
                    )
                    files.writer.close()
        return self.results

    def _move(self) -> None:
        """Take as many turns as possible before something else is due."""
        fleet, steps = self.fleet, self._steps_until_due()
        if self.limits is not None:
            self._raise_limits(self.limits, steps)
            self._leave_memory(self.limits, steps)
            if not fleet.runs:
                return
        if self._engine is None:
            self._engine = self._make_engine()
        if (engine := self._engine) is None:
            self._move()
            return
        engine.advance(min(steps, engine.most_steps), self.clock)
        if failures := engine.failures():
            engine.hand_back()
            self._drop_engine()
            for index, error in reversed(failures):
                retire(fleet, index, error, self._failed)

    def _make_engine(self) -> Engine | PlainEngine | None:
        """Make an engine; if the device has no memory for it, retire the run with the most observations instead."""
        if self.limits is None:
            return PlainEngine(self.fleet)
        most = [self.limits.of(run) for run in self.fleet.runs]
        try:
            return Engine(self.fleet, most, self.config.groups)
        except torch.OutOfMemoryError:  # another process may have taken the memory since it was measured
            pass
        finally:
            self.clock.lap("other")
        gc.collect()  # what was made of it
        self._retire_without_space([int(np.argmax(most))], self.limits, self.config.device)
        return None

    def _raise_limits(self, limits: ObservationLimits, steps: int) -> None:
        """Reserve space for the observations of the next steps; runs that do not fit leave the fleet."""
        fleet = self.fleet
        if not limits.grow(fleet.runs, NEW_PER_STEP * steps):
            return
        # The old engine's memory is free before the new one's is counted.
        self._hand_back()
        self._drop_engine()
        if runs_to_drop(fleet, limits, self.config):
            limits.tighten(fleet.runs, NEW_PER_STEP * steps)
        self._retire_without_space(runs_to_drop(fleet, limits, self.config), limits, self.config.device)

    def _leave_memory(self, limits: ObservationLimits, steps: int) -> None:
        """Retire runs before the machine's memory is full: the system would end the process, and with it all runs."""
        while (index := run_to_drop_here(self.fleet, limits, NEW_PER_STEP * steps, self.config)) is not None:
            self._hand_back()
            self._drop_engine()
            self._retire_without_space([index], limits, "this machine")
            gc.collect()  # its replay

    def _retire_without_space(self, runs: Sequence[int], limits: ObservationLimits, where: str) -> None:
        """Retire runs that do not fit on the device or the machine."""
        for index in sorted(runs, reverse=True):
            needed = f"{limits.of(self.fleet.runs[index]):,} distinct observations"
            error = RuntimeError(f"{where} has no memory left for {needed}; put fewer runs on it, or lower capacity")
            retire(self.fleet, index, error, self._failed)

    def _steps_until_due(self) -> int:
        """Return the number of steps until the next record, evaluation, checkpoint or end."""
        fleet, shared = self.fleet, self.fleet.shared
        intervals = (shared.record_interval, shared.evaluation_interval, self.config.checkpoint_interval)
        ends = [fleet.step + interval - fleet.step % interval for interval in intervals if interval]
        ends += [run.config.steps for run in fleet.runs]
        return min(min(ends) - fleet.step, MOST_STEPS_UNSEEN)

    def _drop_engine(self) -> None:
        """Drop the engine and free its memory on the device; another one is made when needed."""
        self._engine = None
        gc.collect()  # its parts refer to each other

    def _hand_back(self) -> None:
        if self._engine is not None:
            self._engine.hand_back()

    def _after_turn(self) -> None:
        """Write the records, evaluations and checkpoints that are due; nothing here affects the next turn."""
        fleet = self.fleet
        if not self._write_due():
            return  # the checkpoint of the stop follows
        interval = self.config.checkpoint_interval
        if ending := self._ending():
            self._finish(ending)
        elif (interval and fleet.passes(interval)) or self._some_left:
            self._checkpoint()
        self.progress.step(fleet, [(files.shown, files.last) for files in self.files])
        if self.live is not None and fleet.runs and self.live.wants_frame(fleet.step):
            self._hand_back()
            self.live.show(fleet)
        self.clock.lap("other")

    def _write_due(self) -> bool:
        """Write what is due at this step and not yet there; return False if a stop was asked for.

        Where the last runs end between two multiples of an interval, checkpoints hold the state of runs that go on: if
        they are given more steps, they neither have records there nor begin new means.
        """
        fleet, shared, ending = self.fleet, self.fleet.shared, self._ending()
        all_end, recording = len(ending) == len(fleet.runs), fleet.passes(shared.record_interval)
        if (recording or ending) and any(files.recorded != fleet.step for files in self.files):
            between = all_end and not recording
            if between:
                self._leave_out_records()
            self._record(keep=between)
        if all_end and not fleet.passes(shared.evaluation_interval):
            self._leave_out_records()
        return self._evaluate(self._unevaluated())

    def _leave_out_records(self) -> None:
        for files in self.files:
            files.writer.leave_out()

    def _ending(self) -> list[int]:
        """Return the runs that have reached their last step."""
        return [index for index, run in enumerate(self.fleet.runs) if self.fleet.step >= run.config.steps]

    def _unevaluated(self) -> list[int]:
        """Return the runs whose evaluation is due at this step and not yet made."""
        fleet = self.fleet
        due = range(len(fleet.runs)) if fleet.passes(fleet.shared.evaluation_interval) else self._ending()
        made = [files.last is not None and files.last.step == fleet.step for files in self.files]
        return [index for index in due if not made[index]]

    def _record(self, *, keep: bool) -> None:
        """Write the records of every run; `keep` lets the next ones begin where these did."""
        fleet = self.fleet
        self._hand_back()
        statistics = fleet.learner.take_statistics(keep=keep)
        seconds = self.clock.take()
        for run, files, means in zip(fleet.runs, self.files, statistics, strict=True):
            returns, lengths = run.finished_returns, run.finished_lengths
            files.writer.write(
                TrainingRecord(
                    step=fleet.step,
                    updates=fleet.learner.updates,
                    episodes=run.episodes,
                    epsilon=run.epsilon(fleet.step),
                    mean_return=float(np.mean(returns)) if returns else None,
                    mean_length=float(np.mean(lengths)) if lengths else None,
                    **means,
                )
            )
            files.recorded = fleet.step
            if not keep:
                run.finished_returns, run.finished_lengths = [], []
            if warning := diverged(files, fleet.step, means["batch_q"]):
                self.progress.warn(warning)
            record = ReplayRecord(step=fleet.step, nbytes=run.replay.nbytes, statistics=run.replay.stats())
            files.writer.write(record)
            for note in (noise_changed(files, fleet.step, record.statistics), reward_found(files)):
                if note is not None:
                    self.progress.note(note)
            files.writer.write(
                TimingRecord(
                    step=fleet.step,
                    seconds=seconds,
                    steps=fleet.step - self._timed_steps,
                    updates=fleet.learner.updates - self._timed_updates,
                )
            )
        self._timed_updates, self._timed_steps = fleet.learner.updates, fleet.step

    def _evaluate(self, runs: Sequence[int]) -> bool:
        """Evaluate some runs; return False if a stop was asked for, which drops the whole evaluation."""
        self.clock.lap("other")
        configs = [self.fleet.runs[index].config for index in runs]
        try:
            records = evaluate_runs(
                configs, self.fleet.learner, runs, self.fleet.step, lambda: self.stopped_by is not None
            )
        except EvaluationStopped:
            self.clock.lap("evaluation")
            return False
        for index, record in zip(runs, records, strict=True):
            files = self.files[index]
            files.writer.write(record)
            files.last = record
            self.progress.evaluated(files.shown, record)
        self.clock.lap("evaluation")
        return True

    def _checkpoint(self, *, agents_only: bool = False) -> None:
        self.clock.lap("other")
        fleet = self.fleet
        self._hand_back()
        try:
            for index, files in enumerate(self.files):
                checkpoint.save_agent(files.folder, fleet, index)
            for files in self.files:
                files.writer.sync()
            if not agents_only:
                writers = [files.writer for files in self.files]
                checkpoint.save(self.folder, fleet, [files.name for files in self.files], writers)
        except OSError as error:
            whole = checkpoint.exists(self.folder)
            way_out = "The previous one is complete: free some space and resume" if whole else "It was the first"
            raise RunError(f"the checkpoint of step {fleet.step} could not be written: {error}. {way_out}.") from error
        self._some_left = False
        self.clock.lap("checkpoint")

    def _finish(self, runs: list[int]) -> None:
        """Close the finished runs; the others continue without them."""
        others_continue = len(runs) < len(self.fleet.runs)
        self._checkpoint(agents_only=not self.config.final_checkpoint and not others_continue)
        for index in reversed(runs):
            files = self.files.pop(index)
            last = None if files.last is None else files.last.mean_return
            written = described(files.writer.position, files.writer.digest)
            write_json(files.folder / FINISHED, {"step": self.fleet.step, "mean_return": last, **written})
            note_session(files.folder, "finished", step=self.fleet.step)
            files.writer.close()
            self.results.append(RunResult(files.folder, self.fleet.step, True, files.last))
        self.fleet.drop(runs)
        self._drop_engine()
        if not self.fleet.runs and self.config.final_checkpoint:
            checkpoint.keep_newest(self.folder)
        elif not self.fleet.runs:
            checkpoint.remove(self.folder)
        elif runs:
            self._checkpoint()

    def _failed(self, run: Run, error: Exception) -> None:
        files = next(files for files in self.files if files.run is run)
        self.files.remove(files)
        note_session(files.folder, "failed", step=self.fleet.step, error=f"{type(error).__name__}: {error}")
        files.writer.close()
        self.results.append(RunResult(files.folder, self.fleet.step, False, files.last, str(error)))
        self.progress.failed(files.shown, error)
        self._some_left = checkpoint.exists(self.folder)
        if not self.fleet.runs:
            raise RunError(f"the run failed at step {self.fleet.step}: {type(error).__name__}: {error}") from error

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        """Close everything that is still open, however the session ends."""
        try:
            yield
        finally:
            for files in self.files:
                files.writer.close()
            for run in self.fleet.runs:
                run.envs.close()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn Ctrl-C, SIGTERM and a closed terminal into a checkpoint and a clean stop; a second one stops at once."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *endings())}

        def ask(number: int, frame: FrameType | None) -> None:
            self.stopped_by = number
            if number == HANGUP:
                leave_terminal()
            else:
                signal.signal(number, before[number])
            self.progress.stopping("stopping (Ctrl-C again stops at once)" if number == signal.SIGINT else "stopping")

        with handling(before, ask):
            yield
