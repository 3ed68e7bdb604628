"""All of a turn of Sokoban's lanes in one call: moves, last observations, new levels; shared out among threads."""
