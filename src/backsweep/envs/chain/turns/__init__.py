"""All of a turn of NChain's lanes in one call: moves, last observations, new levels; shared out among threads."""
