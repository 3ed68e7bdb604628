"""What a fleet will need, reckoned before it starts: room on the device, and memory of the machine."""

from __future__ import annotations

import math
from functools import lru_cache

import torch

from backsweep.envs import exact, find_task
from backsweep.learner.reckoning import working_bytes
from backsweep.learner.stepper import reason_against_fused
from backsweep.memory import physical_memory
from backsweep.trainer.config import RunConfig, SessionConfig
from backsweep.trainer.defaults import task_options
from backsweep.trainer.engine import movable
from backsweep.trainer.fleet import Fleet, lane_network
from backsweep.trainer.lane import Lane

MARGIN = 0.92
"""Share of the free memory that is counted on."""
BYTES_PER_ROW = 260
"""Of a replay besides its observations, with a graph and priorities, at its fullest."""
NEW_PER_ROW = 1.25
"""Distinct observations per stored row where nothing is known of the task: a successor, and now and then a start."""


def rooms_on_device(fleet: Fleet, session: SessionConfig) -> dict[Lane, int] | None:
    """Return for how many observations of each lane there is to be room, None if lanes are to take plain turns."""
    if not uses_engine(fleet, session):
        return None
    return {lane: room_for(lane.config, session) for lane in fleet.lanes}


def uses_engine(fleet: Fleet, session: SessionConfig) -> bool:
    """Say whether the compiled engine moves a fleet."""
    can = movable(fleet.lanes)
    if session.engine == "compiled" and not can:
        raise ValueError(
            "engine 'compiled' moves runs of one environment on the project's own tasks (NChain, MiniGrid, Sokoban) "
            "without frame stacks; take 'plain' or 'auto' for others"
        )
    if session.engine == "auto":
        return can and (len(fleet.lanes) > 1 or session.device != "cpu")
    return session.engine == "compiled"


def room_for(config: RunConfig, session: SessionConfig) -> int:
    """Return for how many distinct observations of a run there is to be room on the device."""
    if session.observations_per_run is not None:
        return session.observations_per_run
    most = 2 * config.capacity  # a row has two observations
    known = known_observations(config)
    if known is not None:
        return min(known, most)
    return min(most, math.ceil(NEW_PER_ROW * min(config.capacity, config.steps)) + 1)


def known_observations(config: RunConfig) -> int | None:
    """Return how many observations a task has, None if nobody knows."""
    assert config.task is not None
    if find_task(config.task).family not in ("nchain", "minigrid"):
        return None
    return _count(config.task, tuple(sorted(task_options(config).items())))


@lru_cache(maxsize=32)
def _count(task: str, options: tuple[tuple[str, object], ...]) -> int | None:
    try:
        model = exact(task, **dict(options))
    except ValueError:  # rewards that depend on time, say: the states cannot be listed
        return None
    return model.num_states + model.num_terminal


def check_memory(fleet: Fleet, session: SessionConfig) -> None:
    """Refuse a fleet that would not fit, and say how large a one would."""
    if not uses_engine(fleet, session):
        return
    rooms = [room_for(lane.config, session) for lane in fleet.lanes]
    frame = _observation_bytes(fleet)
    shared, network = fleet.shared, lane_network(fleet.lanes[0])
    space = fleet.lanes[0].envs.observation_space
    assert space.dtype is not None
    fused = (
        session.device != "cpu"
        and reason_against_fused(network, fleet.learner.dtype, space.shape or (), space.dtype) is None
    )
    working = working_bytes(network, fleet.learner.rule, 1, shared.batch_size, fleet.learner.dtype, fused=fused)
    on_device = [working + frame * (room + 1) for room in rooms]
    in_memory = [
        frame * room + BYTES_PER_ROW * min(shared.capacity, lane.config.steps)
        for lane, room in zip(fleet.lanes, rooms, strict=True)
    ]
    if session.device == "cpu":
        _refuse(fleet, [a + b for a, b in zip(on_device, in_memory, strict=True)], physical_memory(), "this machine")
        return
    free, _ = torch.cuda.mem_get_info(torch.device(session.device))
    _refuse(fleet, on_device, free, session.device)
    _refuse(fleet, in_memory, physical_memory(), "this machine")


def _refuse(fleet: Fleet, needed: list[int], free: int | None, where: str) -> None:
    if free is None or sum(needed) <= MARGIN * free:
        return
    fitting, total = 0, 0
    for bytes_of_lane in needed:
        total += bytes_of_lane
        if total > MARGIN * free:
            break
        fitting += 1
    advice = f"{fitting} of them would fit" if fitting else "not even one of them would fit"
    raise ValueError(
        f"a fleet of {len(fleet.lanes)} such runs needs about {_gib(sum(needed))} on {where}, which has {_gib(free)}; "
        f"{advice}. Lower capacity (now {fleet.shared.capacity:,}) or observations_per_run to fit more"
    )


def _observation_bytes(fleet: Fleet) -> int:
    layout = fleet.lanes[0].replay.machinery.store.layout
    return layout.nbytes


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
