"""Choosing thresholds for binary and confidence heads. Free of torch.

A score at or above the threshold counts as a yes ("pressed"), here and everywhere else.
"""
