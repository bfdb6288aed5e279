"""Where everything sits in a recording and in a feature row: names, indices and sizes.

A frame is 33 pose points, two 21-point hands (x, y, z each), two hand-present flags and 33 visibilities.
"""

from __future__ import annotations

import numpy as np

FRAME_SIZE = 260
POSE_POINTS, HAND_POINTS = 33, 21
COORDINATES = 225
"""The first values of a frame are coordinates; the rest are flags and visibilities, which have no velocity."""
CONTROL_SIZE = 28
STATE_SIZE = 46
HISTORY = 5
"""Frames of past controls in a feature row."""
WINDOW = 30
LOOK_DEADZONE = 0.08
"""Looking counts as active where the magnitude of (yaw, pitch) is above this."""

FRAME_FEATURES = slice(0, 260)
VELOCITY_FEATURES = slice(260, 485)
STATE_FEATURES = slice(485, 531)
HISTORY_FEATURES = slice(531, 671)
FEATURE_SIZE = 671

CONTROL_NAMES = (
    "move_forward", "move_backward", "strafe_left", "strafe_right", "sprint", "sneak", "jump", "attack", "use_item",
    "look_yaw", "look_pitch", "drop_item", "swap_offhand", "open_inventory",
    "hotbar_1", "hotbar_2", "hotbar_3", "hotbar_4", "hotbar_5", "hotbar_6", "hotbar_7", "hotbar_8", "hotbar_9",
    "cursor_x", "cursor_y", "inv_left_click", "inv_right_click", "inv_shift_held",
)  # fmt: skip
ACTION = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13)
LOOK = (9, 10)
HOTBAR = (14, 15, 16, 17, 18, 19, 20, 21, 22)
CURSOR = (23, 24)
INV = (25, 26, 27)
HEADS = {"action": ACTION, "look": LOOK, "hotbar": HOTBAR, "cursor": CURSOR, "inv": INV}
"""Which controls a head of the model gives, in order."""
BINARY = ACTION + INV
"""The 15 on-off controls."""
CURSOR_AT_REST = 0.5
"""What recordings hold as both coordinates of the cursor while no screen is open."""
OPEN_INVENTORY = 11
"""Position of open_inventory inside ACTION; it is valid on all frames, since it also closes the screen."""

STATE_NAMES = (
    "can_melee", "can_ranged", "can_place", "can_eat", "is_tool", "hand_empty", "is_other",
    "offhand_shield", "offhand_food", "offhand_totem", "offhand_empty",
    "health", "hunger", "armor", "on_ground", "in_water", "swimming", "flying", "climbing", "on_fire",
    "sprinting", "sneaking", "fall_distance", "velocity_y", "attack_cooldown", "is_using_item", "is_blocking",
    "item_use_progress", "recently_hurt", "target_is_entity", "target_is_block", "target_entity_hostile",
    "target_distance", "nearest_hostile_distance", "nearest_hostile_yaw", "hostile_count", "time_of_day",
    "survival_mode", "screen_open_type", "speed", "slowness", "strength", "damage_over_time", "fire_resistance",
    "hotbar_slot", "horizontal_collision",
)  # fmt: skip
SCREEN_OPEN = 38
"""State column: 0 no screen, .33 inventory, .66 chest, 1 other."""
HOTBAR_SLOT = 44
"""State column: the slot in the hand, 0 to 8, over 8."""
LEAKING_STATE = (20, 21, 25, HOTBAR_SLOT)
"""sprinting, sneaking, is_using_item and hotbar_slot give away the same frame's controls: features lag them a frame."""

DEFAULT_STATE = np.zeros(STATE_SIZE, np.float32)
"""State where nothing is known: empty hands, full health and hunger, standing, attack ready."""
DEFAULT_STATE[[5, 10, 11, 12, 14, 24]] = 1.0
DEFAULT_STATE.flags.writeable = False
