"""A sitting of a log at a steady rate: its controls, its state, and a pose that would have announced the controls.

What a log does not say follows from the rest: screens open and close by their keys, the mouse moves the cursor as far
as it would have turned the view, number keys choose slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo import names
from projects.controls.demo.body import pose
from projects.controls.demo.game import INVENTORY_OPEN, implied_state
from projects.controls.demo.mimic import mimic
from projects.controls.demo.script import MIDDLE, gestures
from projects.controls.importers.ticks import (
    DEGREES_PER_PIXEL,
    INVENTORY_SCREEN,
    NO_SCREEN,
    OTHER_SCREEN,
    SCREEN_PIXELS,
    UNSAID,
    Rows,
    down,
)
from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    CURSOR,
    DEFAULT_STATE,
    HOTBAR,
    LOOK,
    SCREEN_OPEN,
    STATE_NAMES,
    WINDOW,
)
from projects.controls.recordings import Recording
from projects.controls.resample import Clock, limited

DEGREES_AT_FULL_LOOK = 15.0
"""Look is the degrees turned in a frame over this many."""
LONGEST_SESSION = 3600.0
"""Seconds; the pose of so much is made at once, which bounds the memory that it takes to a gigabyte."""
_HELD = {
    "forward": names.FORWARD, "back": names.BACK, "left": names.LEFT, "right": names.RIGHT, "sprint": names.SPRINT,
    "sneak": names.SNEAK, "jump": names.JUMP, "attack": names.ATTACK, "use": names.USE,
}  # fmt: skip
_PRESSED = {"drop": names.DROP, "swapHands": names.SWAP}
_CLICKED = {"attack": names.LEFT_CLICK, "use": names.RIGHT_CLICK}
_SCREEN_STATE = np.zeros(3)
_SCREEN_STATE[[NO_SCREEN, INVENTORY_SCREEN, OTHER_SCREEN]] = 0.0, INVENTORY_OPEN, 1.0
_SLOT = STATE_NAMES.index("hotbar_slot")

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


class Play:
    """rows: the ticks of one sitting, at least two. No more is held than these until the sessions are asked for."""

    def __init__(self, rows: Rows, fps: float, session_type: str) -> None:
        self.rows, self.fps, self.session_type = rows, fps, session_type
        self.frames = Clock(rows["time"], fps).frames
        self.least_sessions = int(np.ceil(self.frames / (LONGEST_SESSION * fps)))
        self.most_sessions = self.frames // WINDOW

    def sessions(self, titles: Sequence[str], rng: np.random.Generator) -> Iterator[Recording]:
        """The sitting cut into sessions of about the same length, one a title, played by a made-up body an hour."""
        controls, state = frame_controls(self.rows, self.fps)
        parts = np.array_split(np.arange(len(controls)), len(titles))
        together = max(1, int(LONGEST_SESSION * self.fps) // len(parts[0]))
        for first in range(0, len(parts), together):
            block = np.concatenate(parts[first : first + together])
            frames = pose(gestures(mimic(controls[block], rng), rng), self.fps, rng)
            for title, part in zip(titles[first:], parts[first : first + together], strict=False):
                yield Recording(
                    name=title,
                    frames=frames[part - block[0]],
                    controls=controls[part].astype(np.float32),
                    state=state[part].astype(np.float32),
                    timestamps=part / self.fps,
                    fps=self.fps,
                    session_type=self.session_type,
                    synthesised_pose=True,
                )


def frame_controls(rows: Rows, fps: float) -> tuple[Floats, Floats]:
    """The controls, (frames, 28), and the state, (frames, 46), of every frame.

    Movement keys and mouse buttons are on while they are held, all else fires once a press. Opposite directions cancel
    each other. While a screen is open, buttons click in it, sneak is its shift and the mouse moves the cursor.
    """
    clock = Clock(rows["time"], fps)
    pressed, screen = rows["pressed"], _screen(rows)
    is_open = screen > NO_SCREEN
    controls = clock.held(_held(rows["held"], is_open)).astype(np.float64)
    open_frames = is_open[clock.first]
    controls[:, ACTION] *= ~open_frames[:, None]  # of keys that are held while a screen comes up
    controls[:, names.SHIFT] *= open_frames
    pulses = {names.INVENTORY: down(pressed, "inventory") | (down(pressed, "ESC") & is_open)}
    pulses |= {control: down(pressed, key) & ~is_open for key, control in _PRESSED.items()}
    pulses |= {control: down(pressed, key) & is_open for key, control in _CLICKED.items()}
    for control, presses in pulses.items():
        controls[:, control] = clock.pulses(presses)
    chosen = _chosen(rows, is_open)
    places = clock.places(chosen != UNSAID)
    slots = chosen[chosen != UNSAID][places < clock.frames]
    controls[places[places < clock.frames], HOTBAR[0] + slots] = 1.0
    degrees = clock.moved(rows["turn"] * ~is_open[:, None])
    controls[:, LOOK] = limited(degrees / DEGREES_AT_FULL_LOOK, 1.0)
    controls[:, CURSOR] = np.where(open_frames[:, None], _cursor(rows, is_open)[clock.latest], MIDDLE)
    return controls, _state(rows, clock, controls, screen[clock.first])


def _held(bits: NDArray[np.uint32], is_open: Bools) -> Bools:
    """(ticks, 28): the controls that are on as long as a key is held."""
    held = np.zeros((len(bits), CONTROL_SIZE), bool)
    for key, control in _HELD.items():
        held[:, control] = down(bits, key) & ~is_open
    held[:, names.SHIFT] = down(bits, "sneak") & is_open
    for one, other in ((names.FORWARD, names.BACK), (names.LEFT, names.RIGHT)):
        both = held[:, one] & held[:, other]
        held[both, one] = held[both, other] = False
    return held


def _screen(rows: Rows) -> Whole:
    """(ticks,): the screen that is open when a tick begins; the inventory key opens and closes it, Escape closes it."""
    said: Whole = rows["screen"].astype(np.int64)
    if (said != UNSAID).all():
        return said
    inventory, escape = (down(rows["pressed"], key) for key in ("inventory", "ESC"))
    toggled, is_open = np.zeros(len(rows), bool), False
    for tick in np.flatnonzero(inventory | escape).tolist():
        toggled[tick] = inventory[tick] or is_open
        is_open ^= bool(toggled[tick])
    return np.where((np.cumsum(toggled) - toggled) % 2 == 1, INVENTORY_SCREEN, NO_SCREEN)


def _chosen(rows: Rows, is_open: Bools) -> Whole:
    """(ticks,): the slot (0 to 8) that is chosen on a tick, `UNSAID` where none is."""
    slot: Whole = rows["slot"].astype(np.int64)
    if (slot != UNSAID).all():
        return np.where(np.diff(slot, prepend=slot[:1]) != 0, slot, UNSAID)
    chosen = np.full(len(rows), UNSAID)
    for number in range(len(HOTBAR)):
        chosen[down(rows["pressed"], f"hotbar.{number + 1}") & ~is_open] = number
    return chosen


def _cursor(rows: Rows, is_open: Bools) -> Floats:
    """(ticks, 2): where the cursor is, x and y in screen fractions; unsaid, it starts in the middle of every screen."""
    cursor = rows["cursor"].astype(np.float64)
    if not np.isnan(cursor[is_open]).any():
        return cursor
    moved = rows["turn"] * (1 / DEGREES_PER_PIXEL / np.array(SCREEN_PIXELS))
    cursor = np.full(cursor.shape, MIDDLE)
    for tick in np.flatnonzero(is_open).tolist():
        start = cursor[tick - 1] if tick and is_open[tick - 1] else MIDDLE
        cursor[tick] = np.clip(start + moved[tick], 0, 1)
    return cursor


def _state(rows: Rows, clock: Clock, controls: Floats, screen: Whole) -> Floats:
    """What the log says of screen and slot, all else unknown; from a log that says nothing, what the controls imply."""
    if (rows["screen"] == UNSAID).any():
        return implied_state(controls, screen > NO_SCREEN, clock.fps)
    state = np.repeat(DEFAULT_STATE[None].astype(np.float64), clock.frames, axis=0)
    state[:, SCREEN_OPEN] = _SCREEN_STATE[screen]
    if (rows["slot"] != UNSAID).all():
        state[:, _SLOT] = rows["slot"][clock.latest] / 8
    return state
