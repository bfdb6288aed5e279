"""Names and sizes of what a recorded frame holds, and when things count.

Frame t: latent z_t (C, H, W). Its action produced it, chosen after z_{t-1} was seen; its reward belongs to the
transition that ended in it.
"""

from __future__ import annotations

SLICES = 18
"""Directions of 20 degrees: slice k is around k · 20°, 0 is east, counter-clockwise."""
NONE = SLICES
"""The movement that is none."""
MOVEMENTS = SLICES + 1
UNKNOWN = -1
"""The movement of a frame that nothing is known of."""
ABILITIES = ("q", "w", "e", "r", "d", "f", "item", "b")

GOLD_REWARD, DEATH_REWARD = 0.01, -10.0
EVENT_GOLD = 10.0
"""A gold step of so much, or a death, is an event; less is what everyone gets as time goes by."""
BEFORE, AFTER = 5, 3
"""Frames that the rule of deaths looks at before and after a frame."""
REFRACTORY = 20
"""Frames after a death in which there is no other."""
MOST_FRAMES = 10_000_000
"""From the first frame number of a video to the last, 139 hours: more is a damaged number."""
MOST_GOLD = 1_000_000.0
"""In a frame, or of a player: more is a damaged number."""
NEWEST = 2
"""Edition of new runs. Those of the first predict rewards 0 to L - 1 frames ahead, not 0 to L."""
OFFSETS = 8
"""Frames ahead that rewards and actions are predicted."""
