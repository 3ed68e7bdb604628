"""A page with the state graph of a replay, to explore in a browser, offline."""

from backsweep.view.page import GraphPage, graph_page

__all__ = ["GraphPage", "graph_page"]
