"""A log of any size: its tail, its lines by number, searching it."""
