"""Carrying out a question's runs: what is left to do, how long it takes, and doing it on all cores."""
