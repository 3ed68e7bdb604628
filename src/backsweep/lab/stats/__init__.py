"""Statistics of runs: intervals, aggregates, survival times, correlations."""
