"""Short names for the indices of the 28 controls."""

from __future__ import annotations

from projects.controls.layout import ACTION, CURSOR, HOTBAR, INV, LOOK

FORWARD, BACK, LEFT, RIGHT, SPRINT, SNEAK, JUMP, ATTACK, USE, DROP, SWAP, INVENTORY = ACTION
YAW, PITCH = LOOK
POINT_X, POINT_Y = CURSOR
LEFT_CLICK, RIGHT_CLICK, SHIFT = INV
FIRST_SLOT = HOTBAR[0]
