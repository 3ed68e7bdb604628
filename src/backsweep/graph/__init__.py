"""The predecessor graph of the stored transitions."""

from backsweep.graph.graph import Graph, GraphDraws, GraphView

__all__ = ["Graph", "GraphDraws", "GraphView"]
