"""Planning on the stored graph: values of every stored state, and targets from them."""

from backsweep.planning.graph_values import GraphValues

__all__ = ["GraphValues"]
