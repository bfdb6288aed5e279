"""Engines: long work in a subprocess that speaks the two-log protocol."""
