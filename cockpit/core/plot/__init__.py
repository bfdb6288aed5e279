"""The mathematics of charts: smoothing, reduction to pixels, scales, ticks, and a picture made of characters."""
