"""The check of loaded components on a second thread, while the rest of their save is read.

Reading copies and hashes files, and the check follows indices in random order. Both spend most of their time outside of
the interpreter's lock, so on two cores the check is nearly free. On one core the two take turns.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

from numpy.typing import NDArray

from backsweep.jit.interrupts import uninterrupted
from backsweep.snapshot.saved_component import CheckStep, SavedComponent, arrays_below


class _Step(NamedTuple):
    component: str
    step: CheckStep
    needs: frozenset[str]
    round: int


class ComponentChecks:
    """Runs the steps of the check of some components, each as soon as its arrays have been read: a `ReadListener`.

    Use it as a context manager. An error of a step is raised by the next `wait`; leaving the block because of another
    error ends the check after its current step.

    Parameters
    ----------
    components
        The components by name, each after those that it builds on.
    refused
        Returns a context for the steps of a component, which turns their errors into those to raise.
    """

    def __init__(
        self, components: Mapping[str, SavedComponent], refused: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self._refused = refused
        steps = [
            _Step(name, step, frozenset(f"{name}/{array}" for array in step.arrays), place)
            for name, owner in components.items()
            for place, step in enumerate(owner.checks())
        ]
        self._steps = sorted(steps, key=lambda step: step.round)
        self.order = tuple(f"{step.component}/{array}" for step in self._steps for array in step.step.arrays)
        self._arrays: Mapping[str, NDArray[Any]] = {}
        self._there: set[str] = set()
        self._all_read = self._stopped = self._busy = False
        self._error: BaseException | None = None
        self._done = 0
        self._changed = threading.Condition()

    def __enter__(self) -> ComponentChecks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy)

    def begin(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Start to wait for arrays."""
        self._arrays = arrays
        # Not `threading.Thread`: its `start` hangs if the new thread has no memory for its first step. If there is no
        # thread, `wait` runs the steps.
        with contextlib.suppress(RuntimeError):
            _thread.start_new_thread(self._run, ())

    def arrived(self, name: str) -> None:
        """Take note that an array can be checked."""
        with self._changed:
            self._there.add(name)
            self._changed.notify_all()

    def wait_for_sizes(self) -> None:
        """Wait for the first step of each component, after everything has been read; raise what any step has found."""
        self._wait(sum(step.round == 0 for step in self._steps))

    def wait(self) -> None:
        """Wait for all steps, after everything has been read; raise what any has found."""
        self._wait(len(self._steps))

    def _wait(self, count: int) -> None:
        """Wait until `count` steps are done; run those that the other thread is not at."""
        with self._changed:
            self._all_read = True
            self._changed.notify_all()
        with uninterrupted():  # a step that was taken must be run
            while self._take(lambda: self._done >= count):
                self._run_step()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while self._take(lambda: self._stopped or self._done == len(self._steps)):
            self._run_step()

    def _take(self, enough: Callable[[], bool]) -> bool:
        """Wait for the next step and take it; return False if it is enough, or if a step has found something."""

        def ready() -> bool:
            if self._error is not None or enough():
                return True
            # If all has been read and an array is missing, the first step says so.
            return not self._busy and (self._all_read or self._steps[self._done].needs <= self._there)

        with self._changed:
            self._changed.wait_for(ready)
            if self._error is not None or enough():
                return False
            self._busy = True
            return True

    def _run_step(self) -> None:
        step = self._steps[self._done]
        error: BaseException | None = None
        try:
            with self._refused(step.component):
                step.step.run(arrays_below(self._arrays, f"{step.component}/"))
        except BaseException as found:  # raised by the thread that waits
            error = found
        with self._changed:
            self._busy, self._error = False, error
            self._done += 1
            self._changed.notify_all()
