"""The interface of a library to the benchmarks."""

from __future__ import annotations

import abc
import sys
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from benchmarks.streams import Stream, Transition


class MissingError(Exception):
    """A library is not installed, does not load, or has nothing of the kind; the message says which."""


@dataclass(frozen=True)
class Wanted:
    """The replay that a benchmark needs."""

    space: gym.Space[Any]
    rows: int
    lanes: int = 1
    method: str = "uniform"
    """uniform, prioritized, topological, mixture or episodic."""
    variant: str = ""
    """A library's own way to save memory, or "" for its default."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an observation."""
        return self.space.shape or ()


class Library(abc.ABC):
    """A replay of some library."""

    def prepare(self, transition: Transition) -> Any:
        """Convert a transition to the form that this library's users already have; not timed."""
        return transition

    @abc.abstractmethod
    def add(self, prepared: Any) -> None:
        """Add one transition (of every lane)."""

    @abc.abstractmethod
    def sample(self, batch: int) -> Any:
        """Return a batch with everything a learner needs."""

    def sample_and_update(self, batch: int, errors: NDArray[np.float32]) -> Any:
        """Return a batch, after giving its rows new priorities."""
        raise TypeError(f"{type(self).__name__} has no priorities")

    def fill(self, stream: Stream, steps: int) -> None:
        """Add the next `steps` transitions of the stream."""
        while steps > 0:
            for transition in stream.take(min(steps, 512)):
                self.add(self.prepare(transition))
            steps -= 512


def load(module: str, distribution: str) -> Any:
    """Import a library, or raise `MissingError` with the reason."""
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise MissingError("not installed") from None
    try:
        loaded = import_module(module)
    except Exception as error:
        raise MissingError(f"does not load: {_first_line(error)}") from error
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return loaded


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:160]
