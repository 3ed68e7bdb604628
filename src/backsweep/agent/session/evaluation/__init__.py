"""Evaluation of agents: rollouts on separate levels, exact values, average Q on a fixed set of states."""

from backsweep.agent.session.evaluation.exact_values import ExactEvaluator, ExactScores, exact_evaluator
from backsweep.agent.session.evaluation.probe import probe_states
from backsweep.agent.session.evaluation.rollouts import FleetValues, Rollouts, play

__all__ = [
    "ExactEvaluator",
    "ExactScores",
    "FleetValues",
    "Rollouts",
    "exact_evaluator",
    "play",
    "probe_states",
]
