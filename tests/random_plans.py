"""Long plans drawn without hypothesis, which takes longer to draw a call than the call itself takes."""

from __future__ import annotations

import random

from backsweep import EpisodicBackward, Mixture, Prioritized, PseudoTerminals, Terminals, Topological, Uniform
from backsweep.samplers import Sampler
from strategies import MOVES, Command, Move, Plan


def random_topological(draw: random.Random) -> Topological:
    """Return a sweep with any options."""
    return Topological(
        roots=draw.choice([1, 2, 8]),
        predecessors=draw.choice([None, 1, 2, 3, 20]),
        start=draw.choice(
            [Terminals(), Terminals(draw.choice([1, 4])), PseudoTerminals(draw.choice([0.01, 1.0, 50.0]))]
        ),
        trees=draw.choice(["shared", "separate"]),
        draw=draw.choice(["uniform", "visits"]),
        stitch=draw.random() < 0.7,
        shuffle=draw.choice([0, 0, 1, 30]),
        fallback=draw.choice(["uniform", "uniform", "error"]),
    )


def random_sampler(draw: random.Random, with_mixtures: bool = True) -> Sampler:
    """Return any built-in sampler with any options."""
    kind = draw.randrange(6 if with_mixtures else 5)
    if kind == 0:
        return Uniform()
    if kind == 1:
        return EpisodicBackward(
            timeouts=draw.random() < 0.5, running=draw.random() < 0.5, fallback=draw.choice(["uniform", "error"])
        )
    if kind == 2:
        return Prioritized(
            alpha=draw.choice([0.0, 0.6, 1.0, 2.0]),
            beta=draw.choice([0.0, 0.4, 1.0]),
            beta_rows=draw.choice([None, 10]),
            clip=draw.choice([None, 1.0]),
            normalise=draw.choice(["buffer", "batch"]),
            stratified=draw.random() < 0.5,
        )
    if kind < 5:
        return random_topological(draw)
    parts = [random_sampler(draw, with_mixtures=False) for _ in range(draw.randrange(2, 5))]
    cuts = [draw.randrange(1, 10) for _ in parts]
    return Mixture([(cut / sum(cuts), part) for cut, part in zip(cuts, parts, strict=True)])


def random_plan(draw: random.Random, length: int) -> Plan:
    """Return a plan for a ring of any size that is written around many times, now and then saved and loaded."""
    num_envs = draw.choice([1, 1, 2, 5])
    states = draw.choice([1, 3, 12, 40, 120])

    def command() -> Command:
        kind = draw.random()
        if kind < 0.6:
            return "add", [
                Move(draw.choice(MOVES), draw.randrange(states), draw.randrange(states), draw.randrange(-3, 4) / 4)
                for _ in range(num_envs)
            ]
        if kind < 0.8:
            return "sample", draw.randrange(1, 40)
        return ("update", draw.randrange(1000)) if kind < 0.995 else ("reload", None)

    return Plan(
        capacity=draw.choice([num_envs, 7, 30, 200]),
        num_envs=num_envs,
        sampler=random_sampler(draw),
        commands=[command() for _ in range(length)],
        terminals=draw.choice([0, 1, 2, 6]),
        n_step=draw.choice([1, 1, 3]),
        gamma=draw.choice([1.0, 0.9, 0.0]),
        seed=draw.randrange(2**31),
        hides_ends=draw.random() < 0.2,
    )
