"""The live page of a run: its curves, its graph and its last episode, served on this machine only."""

from backsweep.agent.session.live.live import Live

__all__ = ["Live"]
