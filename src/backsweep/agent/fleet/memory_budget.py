"""The memory that a fleet needs on the device and the machine, estimated before it starts."""

from __future__ import annotations

import torch

from backsweep.agent.config import SessionConfig
from backsweep.agent.fleet.fleet import Fleet, run_network
from backsweep.agent.fleet.group import movable
from backsweep.agent.fleet.observation_limits import ObservationLimits
from backsweep.agent.learner.executor import reason_against_fused
from backsweep.agent.learner.memory_estimate import working_bytes
from backsweep.jit.memory import physical_memory

MARGIN = 0.92
"""Share of the free memory that may be used."""
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
            "without frame stacks; take 'plain' or 'auto' for others"
        )
    if session.engine == "auto":
        return can and (len(fleet.runs) > 1 or session.device != "cpu")
    return session.engine == "compiled"


def check_memory(fleet: Fleet, session: SessionConfig) -> None:
    """Refuse a fleet that does not fit into memory, and name the number of runs that would."""
    if not uses_engine(fleet, session):
        return
    limits, frame = ObservationLimits(fleet.runs, session), _observation_bytes(fleet)
    on_device = bytes_on_device(fleet, limits, session)
    in_memory = [
        frame * limits.of(run) + BYTES_PER_ROW * min(fleet.shared.capacity, run.config.steps) for run in fleet.runs
    ]
    if session.device == "cpu":
        _refuse(fleet, [a + b for a, b in zip(on_device, in_memory, strict=True)], physical_memory(), "this machine")
        return
    _refuse(fleet, on_device, free_on(session.device), session.device)
    _refuse(fleet, in_memory, physical_memory(), "this machine")


def bytes_on_device(fleet: Fleet, limits: ObservationLimits, session: SessionConfig) -> list[int]:
    """Return the bytes that each run needs on the device: for its networks and its observations."""
    frame = _observation_bytes(fleet)
    shared, network = fleet.shared, run_network(fleet.runs[0])
    space = fleet.runs[0].envs.observation_space
    assert space.dtype is not None
    fused = (
        session.device != "cpu"
        and reason_against_fused(network, fleet.learner.dtype, space.shape or (), space.dtype) is None
    )
    working = working_bytes(network, fleet.learner.rule, 1, shared.batch_size, fleet.learner.dtype, fused=fused)
    return [working + frame * (limits.of(run) + 1) for run in fleet.runs]


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


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
