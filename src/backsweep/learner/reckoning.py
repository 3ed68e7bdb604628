"""How much memory of the device a learner and its stepper need, reckoned before anything is made."""

from __future__ import annotations

import torch

from backsweep.learner.discor import error_network
from backsweep.learner.networks import Network
from backsweep.learner.rules import TargetRule

COPIES = 6
"""Of each parameter: online, target, two moments, the gradient, and the optimiser's scratch."""


def numbers_per_row(network: Network) -> int:
    """Return how many numbers the plain arithmetic keeps of one observation on its way through a network."""
    cut = sum(stage.places * (stage.patch + stage.outputs) for stage in network.stages)
    return cut + sum(network.widths)


def working_bytes(
    network: Network, rule: TargetRule, lanes: int, batch_size: int, dtype: torch.dtype, *, fused: bool = False
) -> int:
    """Return about how many bytes a learner and its stepper need on the device, besides the bank.

    Three passes of a batch through the network stay in memory at once (observations, successors, the target network's
    successors), and on the way back about as much as for one more. The fused arithmetic cuts no patches and keeps half
    the digits of what flows between layers.
    """
    networks = [network, error_network(network)] if rule.kind == "discor" else [network]
    total = 0
    for each in networks:
        if fused:
            flowing = 2 * (sum(stage.places * stage.outputs for stage in each.stages) + 2 * sum(each.widths[1:]))
        else:
            flowing = dtype.itemsize * numbers_per_row(each)
        total += lanes * (COPIES * dtype.itemsize * each.layout.size + 4 * batch_size * flowing)
    return total + lanes * batch_size * (3 * 8 + 6 * dtype.itemsize)
