"""Doing a question's runs: what is left, how long it takes, and running it on all cores."""
