"""Estimates the device memory of a learner and its executor."""

from __future__ import annotations

import torch

from backsweep.agent.learner.discor import error_network
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule

COPIES = 6
"""Numbers per parameter: online, target, two moments, the gradient, and the optimiser's scratch."""


def bytes_per_row(network: Network, dtype: torch.dtype, *, fused: bool) -> int:
    """Return the approximate bytes of activations for one observation.

    The fused arithmetic cuts no patches, and most of its activations have two bytes.
    """
    if fused:
        return 2 * sum(stage.places * stage.outputs for stage in network.stages) + 4 * sum(network.widths[1:])
    cut = sum(stage.places * (stage.patch + stage.outputs) for stage in network.stages)
    layers = network.actions if network.form == "table" else sum(network.widths)
    return dtype.itemsize * (cut + layers)


def working_bytes(
    network: Network, rule: TargetRule, runs: int, batch_size: int, dtype: torch.dtype, *, fused: bool = False
) -> int:
    """Return the approximate bytes of a learner and its executor on the device, without the observations.

    Three passes of a batch through the network stay in memory at once (observations, successors, the target network's
    successors), and the backward pass needs about as much as one more.
    """
    networks = [network, error_network(network)] if rule.kind == "discor" else [network]
    total = runs * batch_size * (3 * 8 + 6 * dtype.itemsize)  # row numbers, actions, rewards and the like
    for each in networks:
        flowing = 4 * batch_size * bytes_per_row(each, dtype, fused=fused)
        total += runs * (COPIES * dtype.itemsize * each.layout.size + flowing)
    return total
