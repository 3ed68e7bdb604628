"""Runs that train together: the parts of a run, the fleet, its loop, and its memory."""
