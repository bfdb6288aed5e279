"""What the game says: the state that follows from the controls, and the surroundings a mood implies.

`sprinting`, `sneaking`, `is_using_item` and `hotbar_slot` show this frame's controls, as a recorder that reads them at
the end of a tick gives them; everything else follows from the frames before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo.names import ATTACK, JUMP, SNEAK, SPRINT, SWAP, USE
from projects.controls.layout import DEFAULT_STATE, HOTBAR, SCREEN_OPEN, STATE_NAMES

Floats = NDArray[np.float64]
INVENTORY_OPEN = 0.33
COOLDOWN_SECONDS = 0.6
AIRBORNE_SECONDS = 0.5
_COLUMN = {name: column for column, name in enumerate(STATE_NAMES)}
_HELD = (
    "can_melee", "can_ranged", "can_place", "can_place", "can_place", "can_eat", "is_tool", "hand_empty", "is_other",
)  # fmt: skip
"""What lies in each of the nine slots."""


def since(pressed: NDArray[np.bool_]) -> Floats:
    """Frames since the last press strictly before each frame: (frames,), infinite where there was none."""
    frames = np.arange(len(pressed))
    last = np.maximum.accumulate(np.where(pressed, frames, -1))
    before = np.concatenate([[-1], last[:-1]])
    return np.where(before >= 0, frames - before, np.inf)


def hotbar_slot(controls: Floats) -> NDArray[np.int64]:
    """The chosen slot (0 to 8) on each frame: (frames,); the first one until another is chosen."""
    chosen = controls[:, HOTBAR] > 0.5
    frames = np.arange(len(controls))
    last = np.maximum.accumulate(np.where(chosen.any(1), frames, -1))
    return np.where(last >= 0, chosen.argmax(1)[last], 0)


def implied_state(controls: Floats, screen_open: NDArray[np.bool_], fps: float) -> Floats:
    """The state that `controls: (frames, 28)` imply, all else at its default: (frames, 46)."""
    state = np.repeat(DEFAULT_STATE[None].astype(np.float64), len(controls), axis=0)

    def put(name: str, values: Floats | NDArray[np.bool_]) -> None:
        state[:, _COLUMN[name]] = values

    on = controls > 0.5
    slot = hotbar_slot(controls)
    put("sprinting", on[:, SPRINT])
    put("sneaking", on[:, SNEAK])
    put("is_using_item", on[:, USE])
    put("hotbar_slot", slot / 8)
    state[:, SCREEN_OPEN] = np.where(screen_open, INVENTORY_OPEN, 0.0)
    put("attack_cooldown", np.minimum(since(on[:, ATTACK]) / (COOLDOWN_SECONDS * fps), 1.0))
    height = since(on[:, JUMP]) / (AIRBORNE_SECONDS * fps)
    put("on_ground", height > 1)
    put("velocity_y", np.where(height > 1, 0.0, 0.14 * (1 - 2 * np.minimum(height, 1))))
    using = since(~on[:, USE]) - 1
    put("item_use_progress", np.where(np.isfinite(using), np.minimum(using / (1.6 * fps), 1.0), 0.0))
    return state


def equip(state: Floats, controls: Floats) -> None:
    """Put things into the hands, in place: slots hold what `_HELD` says; a swap takes the shield up or away."""
    before = np.vstack([np.zeros_like(controls[:1]), controls[:-1]])
    slot = hotbar_slot(before)
    for name in set(_HELD):
        state[:, _COLUMN[name]] = np.isin(slot, [k for k, kind in enumerate(_HELD) if kind == name])
    shield = np.cumsum(before[:, SWAP] > 0.5) % 2 == 1
    state[:, _COLUMN["offhand_shield"]] = shield
    state[:, _COLUMN["offhand_empty"]] = ~shield
    state[:, _COLUMN["is_blocking"]] = shield & (before[:, USE] > 0.5)


def surround(state: Floats, moods: Iterable[tuple[str, int, int]], fps: float, rng: np.random.Generator) -> None:
    """Add what goes on around the player, in place: enemies in a fight, blocks in reach, wounds, time of day."""
    frames = len(state)
    fighting, near = np.zeros(frames, bool), np.zeros(frames, bool)
    for mood, begin, end in moods:
        fighting[begin:end] = mood == "fight"
        near[begin:end] = mood == "build"
    hurt = fighting & (rng.random(frames) < 0.4 / fps)
    wander = np.cumsum(rng.normal(0, 0.5 / np.sqrt(fps), (frames, 2)), axis=0)  # metres
    values = {
        "health": np.clip(1 - 0.1 * np.cumsum(hurt) + 0.02 * np.arange(frames) / fps, 0.2, 1),
        "hunger": np.clip(1 - 0.0015 * np.arange(frames) / fps, 0.2, 1),
        "armor": np.full(frames, rng.integers(0, 21) / 20),
        "recently_hurt": since(hurt) <= 0.5 * fps,
        "target_is_entity": fighting,
        "target_entity_hostile": fighting,
        "target_is_block": near,
        "target_distance": np.where(fighting | near, np.abs(np.sin(wander[:, 0])) * 4.5 / 6, 0.0),
        "nearest_hostile_distance": np.where(fighting, (1 + np.abs(np.sin(wander[:, 0])) * 6) / 32, 0.0),
        "nearest_hostile_yaw": np.where(fighting, np.sin(wander[:, 1]), 0.0),
        "hostile_count": np.where(fighting, 0.1, 0.0),
        "time_of_day": (rng.random() + np.arange(frames) / (1200 * fps)) % 1,
        "survival_mode": np.ones(frames),
    }
    for name, column in values.items():
        state[:, _COLUMN[name]] = column
