"""All of a turn of MiniGrid's lanes in one call: moves, last observations, new levels; shared out among threads."""
