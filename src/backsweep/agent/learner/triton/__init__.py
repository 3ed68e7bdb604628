"""The arithmetic of an update on a GPU, with kernels that keep what they can off the device's memory.

For float32 networks over uint8 images in a `DeviceObservations`. The first convolution reads images by row number; no
convolution's patches are ever written out; the way back through a convolution gathers instead of adding patches up; an
optimiser's step is one pass, and linear layers, which have most parameters, take Adam's where their gradient is
computed.

Precision. Parameters, moments, gradients of parameters, Q-values and all sums are float32. Factors of products are
rounded to half precision, to nearest: 11 significant bits, as many as TF32 keeps (which cuts off instead). Pixels are
exact. What half precision lacks is range, and each kind of number is kept inside it:

- Weights and activations are mostly between 6e-5, below which precision drops, and 65504. Errors of smaller
  numbers are absolute (3e-8), negligible next to the others they are added to. Activations are clipped at 65504; with
  Q-values of hundreds they are far from it.
- Gradients are proportional to TD errors and can be tiny, so each run's gradient is first multiplied by the power of
  two that brings its largest number to between 1 and 2. That is exact, and undone exactly in float32.

The last layer, whose results are the Q-values, is float32 throughout, forward and back: rounding Q-values of hundreds
to 11 bits would be wrong by tenths.
"""

from __future__ import annotations

from backsweep.agent.learner.triton.fused import FusedArithmetic
from backsweep.agent.learner.triton.network import FusedNetwork

__all__ = ["FusedArithmetic", "FusedNetwork"]
