"""The predecessor graph of the stored transitions."""

from backsweep.graph.graph import Graph, GraphView

__all__ = ["Graph", "GraphView"]
