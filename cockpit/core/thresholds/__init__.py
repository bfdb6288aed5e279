"""Thresholds under review: what they reach, moving them, and the config they are saved in."""
