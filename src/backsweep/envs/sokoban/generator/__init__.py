"""Sokoban rooms: a random walk carves the floor, reverse play from the solved position sets the boxes."""
