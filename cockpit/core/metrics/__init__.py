"""Metrics as named series of points, of one log or of several over one another."""
