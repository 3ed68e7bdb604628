"""Drives a twin through a plan, comparing all the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backsweep.encoding import Encoder
from strategies import Plan
from twins.replay import Twin
from worlds import WORLDS, World


def drive(
    plan: Plan,
    *,
    world: World = WORLDS["discrete"],
    encoder: Encoder | None = None,
    folder: Path | None = None,
    check_every: int = 1,
    bounds: tuple[int, int] | None = None,
    **options: Any,
) -> Twin:
    """Carry out every command on both and compare after each `check_every`; `bounds` are those of a sweep."""
    twin = Twin(
        sampler=plan.sampler,
        capacity=plan.capacity,
        num_envs=plan.num_envs,
        world=world,
        encoder=encoder,
        n_step=plan.n_step,
        gamma=plan.gamma,
        seed=plan.seed,
        **options,
    )
    if bounds is not None:
        twin.bound_sweep(*bounds)
    handed_out = [0]
    for number, (kind, argument) in enumerate(plan.run()):
        if kind == "add":
            twin.add(argument)
        elif kind == "sample":
            batch = twin.sample(min(argument, plan.capacity))
            if batch is not None:
                handed_out = batch.row.tolist()
        elif kind == "update" and twin.store.total:
            # The rows of the last batch, some of them overwritten since, one of them twice.
            rows = [*handed_out, handed_out[0]]
            twin.update(rows, [((row * 7919 + argument) % 1000 - 300) / 37 for row in rows])
        elif kind == "reload":
            assert folder is not None
            twin.reload(folder)
            if bounds is not None:
                twin.bound_sweep(*bounds)
        if number % check_every == 0:
            twin.check()
    twin.check()
    return twin
