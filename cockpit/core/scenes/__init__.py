"""Scenes of an interactive engine, drawn with characters."""
