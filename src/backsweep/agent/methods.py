"""The methods: how rows are drawn, how targets are computed, and whether graph values are used."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass

from backsweep.agent.config import RunConfig
from backsweep.agent.learner.rules import TargetRule
from backsweep.planning import GraphValues
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Sampler, Topological, Uniform
from backsweep.sweep import PseudoTerminals, Terminals


@dataclass(frozen=True)
class Method:
    """How rows are drawn, and how their targets are computed."""

    sampler: Sampler
    """Chooses the rows."""
    rule: TargetRule
    """Computes their targets."""
    values: GraphValues | None = None
    """Configuration of graph values; None for methods without."""
    n_step: int = 1
    """How many steps a transition spans."""


def beta_rows(config: RunConfig) -> int:
    """Return the number of rows over which PER's exponent rises. Nothing else in a method depends on `steps`."""
    return max(1, round(config.per_beta_fraction * config.steps))


def _prioritized(config: RunConfig) -> Prioritized:
    return Prioritized(
        alpha=config.per_alpha,
        beta=config.per_beta,
        final_beta=config.per_final_beta,
        beta_rows=beta_rows(config),
        epsilon=config.per_epsilon,
        clip=config.per_clip,
    )


def method_table(config: RunConfig) -> dict[str, Method]:
    """Return every method with the options of `config`."""
    per = _prioritized(config)
    ends = Terminals(candidates=config.root_candidates)
    sweep = Topological(roots=config.roots, predecessors=config.predecessors, start=ends, trees=config.trees)
    episodes = EpisodicBackward(running=False)

    one_step = TargetRule()
    backward = TargetRule(
        kind="backward",
        diffusion=config.diffusion,
        double=config.ebu_double,
        skipped_steps=config.ebu_skipped_steps,
    )
    discor = TargetRule(kind="discor", temperature=config.discor_temperature, error_target=config.discor_error_target)
    ceer = TargetRule(
        kind="graph",
        share=config.graph_share,
        imitation=config.ceer_imitation,
        imitation_temperature=config.ceer_temperature,
    )

    def mixed(sampler: Sampler) -> Sampler:
        """Eta of each batch from PER (or from uniform replay), the rest from `sampler`."""
        other: Sampler = per if config.mix_with == "per" else Uniform()
        if config.eta in (0.0, 1.0):
            return other if config.eta else sampler
        return Mixture([(1.0 - config.eta, sampler), (config.eta, other)])

    def variant(**changes: object) -> Sampler:
        return mixed(dataclasses.replace(sweep, **changes))  # type: ignore[arg-type]

    def planned(share: float = 1.0) -> TargetRule:
        return TargetRule(kind="graph", share=share)

    values = GraphValues(
        gap=config.gap,
        floor=config.gap_floor,
        untried=config.untried,
        cautious=config.cautious,
        refresh=config.refresh,
        noise_limit=config.noise_limit,
    )
    # The methods of others plan whatever the noise, and take the network's answers and stored loops as they are.
    plain = GraphValues(gap=1.0, margin=None, cautious=False, noise_limit=None)
    tried_only = dataclasses.replace(plain, untried="never")
    backup = dataclasses.replace(plain, depth=config.backup_depth)
    advantage = TargetRule(kind="advantage", advantage=config.advantage)
    second_target = planned(config.erlam_weight / (1.0 + config.erlam_weight))
    single = dataclasses.replace(sweep, roots=1, predecessors=1)
    return {
        "graph": Method(mixed(sweep), planned(), values),
        "graph-uniform": Method(Uniform(), planned(), values),
        "uer": Method(Uniform(), one_step),
        "n-step": Method(Uniform(), one_step, n_step=config.n_step),
        "gap": Method(Uniform(), advantage),  # advantage learning: a wider gap between actions
        "ceer": Method(Uniform(), ceer, tried_only),
        "erlam": Method(Uniform(), second_target, tried_only),
        "graph-backup": Method(Uniform(), planned(), backup),
        "per": Method(per, one_step),
        "ebu": Method(episodes, backward),
        "discor": Method(Uniform(), discor),
        "ter": Method(mixed(sweep), one_step),
        "ter-single": Method(single, one_step),  # and no mixing
        "ter-shuffled": Method(variant(shuffle=config.shuffle), one_step),
        "ter-nostitch": Method(variant(stitch=False), one_step),
        "ter-pseudo": Method(variant(start=PseudoTerminals(kappa=config.kappa)), one_step),
        "ter-visits": Method(variant(draw="visits"), one_step),
        "ebu-mixed": Method(mixed(episodes), backward),
        "ebu-notimeout": Method(EpisodicBackward(timeouts=False, running=False), backward),
    }


METHOD_NAMES: tuple[str, ...] = tuple(method_table(RunConfig(task="nchain-20")))
"""The methods that `run_config` and the command line take."""


_ALSO_CALLED = {"uniform": "uer", "dqn": "uer", "double-dqn": "uer", "prioritized": "per", "topological": "ter"}


def checked_method(name: str) -> str:
    """Return `name` if there is such a method; raise with a suggestion if not."""
    if name in METHOD_NAMES:
        return name
    if (known := _ALSO_CALLED.get(name.lower())) is not None:
        raise ValueError(f"unknown method {name!r}; here it is called {known!r}")
    near = difflib.get_close_matches(name.lower(), METHOD_NAMES, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"known methods are {', '.join(METHOD_NAMES)}"
    raise ValueError(f"unknown method {name!r}; {hint}")


def method_for(config: RunConfig) -> Method:
    """Return the method that `config` names, with its options."""
    method = method_table(config)[checked_method(config.method)]
    if config.explore == "graph" and method.values is None:
        raise ValueError(f"explore must be 'uniform' with method {config.method!r}, which has no graph values")
    return method
