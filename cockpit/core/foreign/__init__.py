"""Logs that other programs write, read as they grow: one reader a file, one table of kinds (`kinds`)."""
