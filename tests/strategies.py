"""Hypothesis strategies: streams of experience that go wrong in every way that real ones do, and sampler settings.

A stream is a list of commands. A lane walks on a small number of states, so states repeat, loop and cycle; it
terminates (on a few shared states, or anywhere), is truncated, is both at once, sits out a call, or is broken off: its
next observation is not the one it ended in, because the caller left steps out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from backsweep import EpisodicBackward, Mixture, Prioritized, PseudoTerminals, Terminals, Topological, Uniform
from backsweep.samplers import Sampler
from twins.store import Step, Unseen


def examples(count: int) -> int:
    """Return how many examples a test that usually has `count` of them has in this run.

    Interpreted kernels are slow; the compiled ones, with bounds checks and without, go through all examples.
    """
    if os.environ.get("HYPOTHESIS_PROFILE") == "long":
        return 30 * count
    return count // 3 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else count


STEP, TERMINATE, TRUNCATE, BOTH, SKIP, BREAK_OFF = "step", "terminate", "truncate", "both", "skip", "break off"
MOVES = [STEP] * 6 + [TERMINATE] * 2 + [TRUNCATE, BOTH, SKIP, BREAK_OFF]


@dataclass(frozen=True)
class Move:
    """What one lane does in one call."""

    kind: str
    target: int
    start: int
    """Where the lane starts if an episode begins."""
    reward: float


@dataclass
class Walker:
    """Turns moves into steps: it knows where each lane stands."""

    num_envs: int
    terminals: int = 2
    """Terminations lead to the states 0..terminals-1, if there is more than 0."""
    hides_ends: bool = False
    """Every second termination comes without the observation that it leads to."""
    places: list[int | None] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.places = [None] * self.num_envs

    def steps(self, moves: list[Move]) -> list[Step | None]:
        """Return one step per lane."""
        return [self._step(lane, move) for lane, move in enumerate(moves)]

    def _step(self, lane: int, move: Move) -> Step | None:
        if move.kind == SKIP:
            return None
        place = self.places[lane]
        if place is None or move.kind == BREAK_OFF:
            place = move.start
        terminated, truncated = move.kind in (TERMINATE, BOTH), move.kind in (TRUNCATE, BOTH)
        target = move.target % self.terminals if terminated and self.terminals else move.target
        self.places[lane] = None if terminated or truncated else target
        self.count += 1
        hidden = self.hides_ends and terminated and move.target % 2 == 0
        return Step(place, self.count, move.reward, Unseen(place) if hidden else target, terminated, truncated)


def moves(states: int, float_rewards: bool) -> st.SearchStrategy[Move]:
    """One lane's move, packed into one number so that hypothesis has little to draw."""
    most = len(MOVES) * states * states * 7

    def unpack(number: int) -> Move:
        number, kind = divmod(number, len(MOVES))
        number, target = divmod(number, states)
        number, start = divmod(number, states)
        reward = number - 3
        return Move(MOVES[kind], target, start, reward / 10 if float_rewards else float(reward))

    return st.integers(0, most - 1).map(unpack)


Command = tuple[str, Any]


def commands(num_envs: int, states: int, float_rewards: bool, with_saves: bool) -> st.SearchStrategy[Command]:
    """One call to the replay: mostly adds."""
    add = st.lists(moves(states, float_rewards), min_size=num_envs, max_size=num_envs).map(lambda m: ("add", m))
    others = [
        st.integers(1, 9).map(lambda n: ("sample", n)),
        st.integers(0, 999).map(lambda n: ("update", n)),
    ]
    if with_saves:
        others.append(st.just(("reload", None)))
    return st.one_of(add, add, add, *others)


def topological() -> st.SearchStrategy[Topological]:
    """Every option of the sweep."""
    return st.builds(
        Topological,
        roots=st.sampled_from([1, 2, 8]),
        predecessors=st.sampled_from([None, 1, 2, 3]),
        start=st.one_of(
            st.just(Terminals()),
            st.builds(Terminals, candidates=st.sampled_from([1, 2, 5])),
            st.builds(PseudoTerminals, kappa=st.sampled_from([0.01, 1.0, 50])),
        ),
        trees=st.sampled_from(["shared", "separate"]),
        draw=st.sampled_from(["uniform", "visits"]),
        stitch=st.sampled_from([True, True, False]),
        shuffle=st.sampled_from([0, 0, 1, 5]),
        fallback=st.sampled_from(["uniform", "uniform", "error"]),
    )


def prioritized() -> st.SearchStrategy[Prioritized]:
    """Every option of prioritized replay."""
    return st.builds(
        Prioritized,
        alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
        beta=st.sampled_from([0.0, 0.4, 1.0]),
        beta_rows=st.sampled_from([None, 10]),
        clip=st.sampled_from([None, 1.0]),
        normalise=st.sampled_from(["buffer", "batch"]),
        stratified=st.booleans(),
    )


def episodic_backward() -> st.SearchStrategy[EpisodicBackward]:
    """Every option of episodic backward."""
    return st.builds(
        EpisodicBackward,
        timeouts=st.booleans(),
        running=st.booleans(),
        fallback=st.sampled_from(["uniform", "uniform", "error"]),
    )


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    """Two to four parts with shares that add up to 1."""
    parts = draw(
        st.lists(
            st.one_of(topological(), prioritized(), episodic_backward(), st.just(Uniform())), min_size=2, max_size=4
        )
    )
    cuts = draw(st.lists(st.integers(0, 10), min_size=len(parts), max_size=len(parts)).filter(any))
    return Mixture([(cut / sum(cuts), part) for cut, part in zip(cuts, parts, strict=True)])


def samplers() -> st.SearchStrategy[Sampler]:
    """Any built-in sampler with any options."""
    return st.one_of(st.just(Uniform()), prioritized(), episodic_backward(), topological(), mixtures())


@dataclass(frozen=True)
class Plan:
    """A replay and what is done to it."""

    capacity: int
    num_envs: int
    sampler: Sampler
    commands: list[Command]
    terminals: int
    n_step: int
    gamma: float
    seed: int
    hides_ends: bool = False

    def run(self) -> Iterator[tuple[str, Any]]:
        """Yield the commands, moves turned into steps."""
        walker = Walker(self.num_envs, self.terminals, self.hides_ends)
        for kind, argument in self.commands:
            yield kind, walker.steps(argument) if kind == "add" else argument


@st.composite
def plans(
    draw: st.DrawFn,
    sampler: st.SearchStrategy[Sampler] | None = None,
    with_saves: bool = False,
    length: int = 60,
    most_states: int = 12,
) -> Plan:
    """A small ring that is written around many times."""
    num_envs = draw(st.sampled_from([1, 1, 2, 3]))
    capacity = draw(st.integers(num_envs, 12))
    states = draw(st.integers(1, most_states))
    one = commands(num_envs, states, draw(st.booleans()), with_saves)
    return Plan(
        capacity=capacity,
        num_envs=num_envs,
        sampler=draw(samplers() if sampler is None else sampler),
        commands=draw(st.lists(one, min_size=length // 4, max_size=length)),
        terminals=draw(st.sampled_from([0, 1, 2, 2])),
        n_step=draw(st.integers(1, 4)),
        gamma=draw(st.sampled_from([1.0, 0.9, 0.5, 0.0])),
        seed=draw(st.integers(0, 3)),
        hides_ends=draw(st.sampled_from([False, False, True])),
    )


def long_stream(seed: int, calls: int, num_envs: int, states: int, terminals: int = 2) -> Iterator[list[Step | None]]:
    """Yield the steps of many calls, drawn with numpy: for rings that are written around hundreds of times."""
    rng = np.random.default_rng(seed)
    walker = Walker(num_envs, terminals)
    for _ in range(calls):
        yield walker.steps(
            [
                Move(
                    MOVES[rng.integers(len(MOVES))],
                    int(rng.integers(states)),
                    int(rng.integers(states)),
                    float(rng.integers(-3, 4)),
                )
                for _ in range(num_envs)
            ]
        )
