"""How a method turns a batch into targets and weights, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


def common_rule(rules: Sequence[TargetRule]) -> TargetRule | None:
    """Return a rule that covers runs with all of these rules, None if there is none.

    Runs whose targets come from elsewhere (EBU's table, graph values) learn together with runs that have one-step
    targets: those are runs whose given targets are always missing.
    """
    if any(rule.kind in ("discor", "advantage") or rule.imitation for rule in rules):
        return rules[0] if len(set(rules)) == 1 else None
    backward = {rule for rule in rules if rule.kind == "backward"}
    if len(backward) > 1:
        return None
    graph = [rule for rule in rules if rule.kind == "graph"]
    return next(iter(backward), graph[0] if graph else rules[0])


@dataclass(frozen=True, kw_only=True)
class TargetRule:
    """The learner's side of a method."""

    kind: Literal["one-step", "backward", "graph", "advantage", "discor"] = "one-step"
    """Double DQN's target for every row; EBU's temporary table for the rows of its episodes, which the first
    part of a mixture gives; values planned on the graph; double DQN with a wider gap between actions (advantage
    learning); DisCor's weights."""
    share: float = 1.0
    """Graph: share of a planned target; the rest is the one-step target."""
    imitation: float = 0.0
    """Graph: weight of CEER's cross-entropy, which pulls the network's preferences among tried actions towards those
    of the graph."""
    imitation_temperature: float = 0.1
    """CEER: temperature of the graph's preferences, in units of scaled rewards."""
    advantage: float = 0.9
    """Advantage learning: share of the difference to the best action that is added to a target."""
    diffusion: float = 0.5
    """EBU's beta: how much of a step's target flows into the step before."""
    double: bool = True
    """EBU: whether the best next action is the online network's. The released code took the target network's (D2)."""
    skipped_steps: int = 0
    """EBU: number of first steps of an episode that are skipped; three in the released code (D3)."""
    temperature: float = 10.0
    """DisCor: the initial temperature."""
    error_target: bool = True
    """DisCor: whether Delta(s', a') comes from a target copy, at the online network's action. The released code took
    the maximum of the error network itself (D13)."""

    @property
    def gives_targets(self) -> bool:
        """Whether targets are computed before an update."""
        return self.kind in ("backward", "graph")
