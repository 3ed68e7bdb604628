"""Runs that advance together: a run's parts, the fleet, its loop, and the memory that they need."""
