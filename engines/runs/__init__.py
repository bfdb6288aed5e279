"""Runs on disk: made, found, started, resumed, forked, replayed, and what state they are in."""
