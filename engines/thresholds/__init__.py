"""Choosing thresholds for binary and confidence heads. numpy only."""
