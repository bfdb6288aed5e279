"""What a frame of a stored game holds, byte for byte, and the ids that are used inside.

One row per frame, with both fighters (133 bytes), and a table of items beside it (12 bytes per item). Sticks and
triggers are kept as the steps in which the game has them (1/80 and 1/140), which is exact. Ids are the game's internal
ones everywhere; external ids are converted where a file is read.
"""

from __future__ import annotations

import numpy as np

FLOATS = (
    "percent", "x", "y", "shield", "speed_air_x", "speed_y", "speed_ground_x", "speed_attack_x", "speed_attack_y",
    "state_age", "hitlag",
)  # fmt: skip
STICKS = ("main_x", "main_y", "c_x", "c_y")
PLAYER = np.dtype(
    [(name, "<f4") for name in FLOATS]
    + [("action", "<u2"), ("ground", "<u2"), ("buttons", "<u2")]
    + [(name, "i1") for name in STICKS]
    + [("shoulder", "u1"), ("jumps", "u1"), ("character", "u1"), ("l_cancel", "u1"), ("hurtbox", "u1")]
    + [("last_attack", "u1"), ("stocks", "u1"), ("combo", "u1"), ("airborne", "u1"), ("right", "u1")]
)
"""One fighter after a frame, and the controller that led into it. `right`: faces right. `ground`: last stood on."""
FRAME = np.dtype([("players", PLAYER, (2,)), ("items", "u1"), ("first_item", "<u4")])
"""`items` of the frame lie from `first_item` on in the item table of its shard."""
ITEM = np.dtype([("x", "<f4"), ("y", "<f4"), ("type", "<u2"), ("state", "u1"), ("owner", "i1")])
"""What flies or lies about. `owner`: the fighter, 0 or 1; -1 where nobody or not known."""
MOST_ITEMS = 15
STICK_STEPS, TRIGGER_STEPS = 80, 140
FIRST_FRAME = -123
"""The number of a game's first frame; players move from about -39 on."""

BUTTONS = {"A": 0x100, "B": 0x200, "X": 0x400, "Y": 0x800, "Z": 0x10, "L": 0x40, "R": 0x20, "D_UP": 0x8}
"""Bits of `buttons`, in the order of the controller's block."""

STAGES = {
    8: "Fountain of Dreams", 18: "Pokémon Stadium", 6: "Yoshi's Story", 26: "Dream Land", 24: "Battlefield",
    25: "Final Destination",
}  # fmt: skip
"""By internal id."""
EXTERNAL_STAGES = {2: 8, 3: 18, 8: 6, 28: 26, 31: 24, 32: 25}
OTHER_STAGE = 0
"""The internal id of every stage that is none of the six."""
CHARACTERS = (
    "Mario", "Fox", "Captain Falcon", "Donkey Kong", "Kirby", "Bowser", "Link", "Sheik", "Ness", "Peach", "Popo",
    "Nana", "Pikachu", "Samus", "Yoshi", "Jigglypuff", "Mewtwo", "Luigi", "Marth", "Zelda", "Young Link", "Dr. Mario",
    "Falco", "Pichu", "Game & Watch", "Ganondorf", "Roy",
)  # fmt: skip
"""By internal id."""
