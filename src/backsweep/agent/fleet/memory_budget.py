"""The memory that a fleet needs on the device and the machine, estimated before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from backsweep.agent.config import RunConfig, SessionConfig
from backsweep.agent.defaults import task_options
from backsweep.agent.fleet.engine import movable
from backsweep.agent.fleet.fleet import Fleet, run_network
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.discor import error_network
from backsweep.agent.learner.executor import reason_against_fused
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule
from backsweep.machine_memory import available_memory, physical_memory
from backsweep.store.layout import WORD
from backsweep.tasks import exact, find_task

FIRST_LIMIT = 16_384
"""Initial number of observations of a run, if their total is unknown."""


class ObservationLimits:
    """How many observations of each run of a fleet the device has memory for."""

    def __init__(self, runs: Sequence[Run], session: SessionConfig) -> None:
        self._limits = {run: first_limit(run.config, session) for run in runs}
        self._most = {run: largest_limit(run.config, session) for run in runs}

    def of(self, run: Run) -> int:
        """Return a run's limit."""
        return self._limits[run]

    def most_new(self, run: Run, new: int) -> int:
        """Return how many of `new` more observations a run can have at most."""
        return max(0, min(new, self._most[run] - run.replay.machinery.store.observations_high))

    def grow(self, runs: Sequence[Run], new: int) -> bool:
        """Raise the limits if a run might reach its own with `new` more observations; return whether they were raised.

        That sets up the device again, so the limits of all runs rise together.
        """
        used = {run: run.replay.machinery.store.observations_high for run in runs}
        if all(min(used[run] + new, self._most[run]) <= self._limits[run] for run in runs):
            return False
        for run in runs:
            self._limits[run] = max(self._limits[run], min(2 * (used[run] + new), self._most[run]))
        return True

    def tighten(self, runs: Sequence[Run], new: int) -> None:
        """Lower the limits to what `new` more observations need and a little more, where doubling takes too much."""
        for run in runs:
            used = run.replay.machinery.store.observations_high
            self._limits[run] = min(self._limits[run], max(used + new, used + used // 4))


def first_limit(config: RunConfig, session: SessionConfig) -> int:
    """Return a run's limit at the start."""
    most = largest_limit(config, session)
    bounded = session.observations_per_run is not None or known_observations(config) is not None
    return most if bounded else min(FIRST_LIMIT, most)


def largest_limit(config: RunConfig, session: SessionConfig) -> int:
    """Return the largest number of observations that a run can have on the device."""
    if session.observations_per_run is not None:
        return session.observations_per_run
    stored = 2 * config.capacity  # a row has two
    known = known_observations(config)
    return stored if known is None else min(known, stored)


def known_observations(config: RunConfig) -> int | None:
    """Return the number of observations of a task, None if unknown."""
    assert config.task is not None
    if not find_task(config.task).is_exact:
        return None
    return _count(config.task, tuple(sorted(task_options(config).items())))


@lru_cache(maxsize=32)
def _count(task: str, options: tuple[tuple[str, object], ...]) -> int | None:
    try:
        model = exact(task, **dict(options))
    except ValueError:  # rewards that depend on time, say: the states cannot be listed
        return None
    return model.num_states + model.num_terminal


MARGIN = 0.92
"""Share of the free memory that may be used."""
KEPT_FREE = 0.04
"""Share of the machine's memory that growing replays leave to everything else."""
COPIES = 6
"""Numbers per parameter: online, target, two moments, the gradient, and the optimiser's scratch."""
BYTES_PER_ROW = 260
"""Bytes per row of a full replay with graph and priorities, without its observations."""


def limits_on_device(fleet: Fleet, session: SessionConfig) -> ObservationLimits | None:
    """Return the limits of the runs' observations, None if the engine is not used."""
    return ObservationLimits(fleet.runs, session) if uses_engine(fleet, session) else None


def uses_engine(fleet: Fleet, session: SessionConfig) -> bool:
    """Return whether the compiled engine steps a fleet."""
    can = movable(fleet.runs)
    if session.engine == "compiled" and not can:
        raise ValueError(
            "engine 'compiled' steps runs of one environment on the project's own tasks (NChain, MiniGrid, Sokoban) "
            "without frame stacks and without explore_until_reward; take 'plain' or 'auto' for others"
        )
    if session.engine == "auto":
        return can and (len(fleet.runs) > 1 or session.device != "cpu")
    return session.engine == "compiled"


def check_memory(fleet: Fleet, session: SessionConfig) -> None:
    """Refuse a fleet that does not fit into memory, and name the number of runs that would."""
    if not uses_engine(fleet, session):
        return
    limits = ObservationLimits(fleet.runs, session)
    on_device = bytes_on_device(fleet, limits, session)
    in_memory = [
        _stored_bytes(run) * limits.of(run) + BYTES_PER_ROW * min(fleet.shared.capacity, run.config.steps)
        for run in fleet.runs
    ]
    if session.device == "cpu":
        _refuse(fleet, [a + b for a, b in zip(on_device, in_memory, strict=True)], physical_memory(), "this machine")
        return
    _refuse(fleet, on_device, free_on(session.device), session.device)
    _refuse(fleet, in_memory, physical_memory(), "this machine")


def bytes_on_device(fleet: Fleet, limits: ObservationLimits, session: SessionConfig) -> list[int]:
    """Return the bytes that each run needs on the device: for its networks and its observations."""
    frame = _observation_bytes(fleet)
    network = run_network(fleet.runs[0])
    space = fleet.runs[0].envs.observation_space
    assert space.dtype is not None
    fused = (
        session.device != "cpu"
        and reason_against_fused(network, fleet.learner.dtype, space.shape or (), space.dtype) is None
    )
    working = working_bytes(network, fleet.learner.rule, fleet.shared.batch_size, fleet.learner.dtype, fused=fused)
    return [working + frame * (limits.of(run) + 1) for run in fleet.runs]


def working_bytes(
    network: Network, rule: TargetRule, batch_size: int, dtype: torch.dtype, *, fused: bool = False
) -> int:
    """Return the approximate bytes of one run's networks and updates on the device, without its observations.

    Three passes of a batch through the network stay in memory at once (observations, successors, the target network's
    successors), and the backward pass needs about as much as one more.
    """
    networks = [network, error_network(network)] if rule.kind == "discor" else [network]
    total = batch_size * (3 * 8 + 6 * dtype.itemsize)  # row numbers, actions, rewards and the like
    for each in networks:
        total += COPIES * dtype.itemsize * each.layout.size
        total += 4 * batch_size * each.bytes_per_row(dtype, fused=fused)
    return total


def runs_to_drop(fleet: Fleet, limits: ObservationLimits, session: SessionConfig) -> list[int]:
    """Return the runs, largest first, that must leave for the others to fit on the device, where no engine is now."""
    free = free_on(session.device)
    if free is None:
        return []
    needed = dict(enumerate(bytes_on_device(fleet, limits, session)))
    leaving = []
    while needed and sum(needed.values()) > MARGIN * free:
        leaving.append(max(needed, key=lambda index: needed[index]))
        del needed[leaving[-1]]
    return leaving


def run_to_drop_here(fleet: Fleet, limits: ObservationLimits, new: int, session: SessionConfig) -> int | None:
    """Return the run with the most observations if `new` more for each run may not fit into this machine's memory.

    None if they fit, or if the runs of this fleet hold too little for their leaving to help.
    """
    available, physical = available_memory(), physical_memory()
    if available is None or physical is None:
        return None
    copies = _observation_bytes(fleet) if session.device == "cpu" else 0  # for the networks
    kept_free = KEPT_FREE * physical
    held = [(_stored_bytes(run) + copies) * run.replay.machinery.store.observations_high for run in fleet.runs]
    needed = sum((_stored_bytes(run) + copies) * limits.most_new(run, new) for run in fleet.runs)
    if not needed or needed + kept_free <= available or sum(held) <= kept_free:
        return None
    return held.index(max(held))


def free_on(device: str) -> int | None:
    """Return the free bytes of a device; None on the CPU, whose memory may be paged out."""
    if device == "cpu":
        return None
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(torch.device(device))
    return free


def _refuse(fleet: Fleet, needed: list[int], free: int | None, where: str) -> None:
    if free is None or sum(needed) <= MARGIN * free:
        return
    fitting, total = 0, 0
    for bytes_of_run in needed:
        total += bytes_of_run
        if total > MARGIN * free:
            break
        fitting += 1
    advice = f"{fitting} of them would fit" if fitting else "not even one of them would fit"
    raise ValueError(
        f"a fleet of {len(fleet.runs)} such runs needs about {_gib(sum(needed))} on {where}, which has {_gib(free)}; "
        f"{advice}. Lower capacity (now {fleet.shared.capacity:,}) or observations_per_run to fit more"
    )


def _observation_bytes(fleet: Fleet) -> int:
    layout = fleet.runs[0].replay.machinery.store.layout
    return layout.nbytes


def _stored_bytes(run: Run) -> int:
    """Return the bytes that a distinct observation takes in a replay; of its frames or bands, one at most is new."""
    store = run.replay.machinery.store
    if store.frame_stack == 1:
        return store.layout.nbytes
    return store.layout.nbytes // store.frame_stack + WORD * store.frame_stack


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
