"""Which rows a batch holds: one module per method."""

from backsweep.samplers.base import Experience, LiveSampler, Sampler, SamplerState
from backsweep.samplers.episodic_backward import EpisodicBackward
from backsweep.samplers.mixture import Mixture
from backsweep.samplers.prioritized import Prioritized
from backsweep.samplers.topological import Topological
from backsweep.samplers.uniform import Uniform

__all__ = [
    "EpisodicBackward",
    "Experience",
    "LiveSampler",
    "Mixture",
    "Prioritized",
    "Sampler",
    "SamplerState",
    "Topological",
    "Uniform",
]
