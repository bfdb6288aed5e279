"""Steering a run: loss weights and presets, learning rate and end, each with what it would do."""
