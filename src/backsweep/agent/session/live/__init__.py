"""A run watched while it trains: a page on this machine alone with its curves, its graph and its last episode."""

from backsweep.agent.session.live.live import Live

__all__ = ["Live"]
