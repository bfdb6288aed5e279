"""Melee: a world model of a fighting game, from replays to play."""
