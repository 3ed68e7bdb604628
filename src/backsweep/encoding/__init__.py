"""Observation -> key: two observations with the same key are the same vertex of the graph.

An encoder is given to `Replay` as a frozen configuration; `build` makes the live encoder for one observation space.
To write your own, implement the two small protocols in `base.py`.
"""

from backsweep.encoding.base import Encoder, LiveEncoder
from backsweep.encoding.discrete import DiscreteKey
from backsweep.encoding.exact_bytes import ExactBytes
from backsweep.encoding.quantized import Quantized
from backsweep.encoding.random_projection import RandomProjection

__all__ = ["DiscreteKey", "Encoder", "ExactBytes", "LiveEncoder", "Quantized", "RandomProjection"]
