"""Evaluation of agents: rollouts on separate levels, exact values, average Q on a fixed set of states."""
