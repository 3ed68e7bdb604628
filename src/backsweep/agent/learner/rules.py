"""How a method turns a batch into targets and weights, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


def common_rule(rules: Sequence[TargetRule]) -> TargetRule | None:
    """Return the rule by which lanes with these rules can learn together, None if there is none.

    A lane with one-step targets is one whose table of backward targets is always empty.
    """
    others = {rule for rule in rules if rule.kind != "one-step"}
    if len(others) > 1:
        return None
    if not others:
        return rules[0] if len(set(rules)) == 1 else None
    (rule,) = others
    alone = all(each == rule for each in rules)
    return rule if rule.kind == "backward" or alone else None


@dataclass(frozen=True, kw_only=True)
class TargetRule:
    """The learner's side of a method."""

    kind: Literal["one-step", "backward", "discor"] = "one-step"
    """Double DQN's target for every row; EBU's temporary table for the rows of its episodes; DisCor's weights."""
    diffusion: float = 0.5
    """EBU's beta: how much of a step's target flows into the step before."""
    double: bool = True
    """EBU: whether the best next action is the online network's. The released code took the target network's (D2)."""
    skipped_steps: int = 0
    """EBU: how many first steps of an episode are left out. The released code left out three (D3)."""
    temperature: float = 10.0
    """DisCor: where the temperature starts."""
    error_target: bool = True
    """DisCor: whether Delta(s', a') comes from a target copy, at the online network's action. The released code took
    the maximum of the error network itself (D13)."""
    backward_source: int = 0
    """EBU: which part of a mixture gives the episodes; rows of other parts get one-step targets."""
