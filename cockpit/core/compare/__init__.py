"""Runs side by side: a table of any number of them, and the curves of a few."""
