"""Runs that train together: the run, the fleet, its loop, and its memory."""
