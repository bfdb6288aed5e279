"""`cockpit data parse`: a person's MineRL keyboard-and-mouse log as recordings, with a pose made from the controls.

A log has one JSON object a line, a tick each: `action.keyboard` {name: 0 or 1}, `action.mouse.camera` [pitch, yaw] in
degrees, `action.mouse.buttons` [pressed button, …] and `timestamp` in milliseconds.

Nobody was filmed: the gestures are those that the demo player would have made, ahead of the real controls, and the
recordings say so (`pose_synthesised`). They show how the engine does on the timing of a real person, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.contract.errors import DataError, UserError
from engines.contract.files import make_directory
from engines.tasks import TaskContext
from projects.controls.demo import names
from projects.controls.demo.body import pose
from projects.controls.demo.game import implied_state
from projects.controls.demo.mimic import mimic
from projects.controls.demo.script import MIDDLE, gestures
from projects.controls.layout import ACTION, CONTROL_SIZE, CURSOR, HOTBAR, LOOK, WINDOW
from projects.controls.recordings import Recording, write_recording
from projects.controls.resample import Clock, limited

SESSION_TYPE = "minerl"
DEGREES_AT_FULL_LOOK = 15.0
"""Look is the degrees turned in a frame over this many."""
LONGEST_STEP = 10.0
"""Seconds between two ticks that are still taken for one sitting."""
_CURSOR_PER_DEGREE = 2400 / 360 / np.array([720.0, 1280.0])
"""Screen fractions (y, x) that the mouse moves the cursor where it would have turned the view by a degree."""
_HELD_KEYS = {
    "forward": names.FORWARD, "back": names.BACK, "left": names.LEFT, "right": names.RIGHT,
    "sprint": names.SPRINT, "sneak": names.SNEAK, "jump": names.JUMP,
}  # fmt: skip
_PRESSED_KEYS = {
    "drop": names.DROP, "swapHands": names.SWAP,
    **{f"hotbar.{slot + 1}": control for slot, control in enumerate(HOTBAR)},
}  # fmt: skip
_SCREEN_KEYS = ("inventory", "ESC")
_KEYS = (*_HELD_KEYS, *_PRESSED_KEYS, *_SCREEN_KEYS)
_LEFT_BUTTON, _RIGHT_BUTTON = 0, 1

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    out: str
    fps: float = 20.0
    sessions: int = 8  # of the log at hand 20 seconds each, two of which validate


class _Mouse(msgspec.Struct):
    camera: tuple[float, float]
    buttons: list[int]


class _Action(msgspec.Struct):
    keyboard: dict[str, bool | float]
    mouse: _Mouse


class _Tick(msgspec.Struct):
    action: _Action
    timestamp: float


class Ticks(NamedTuple):
    """A log as arrays. times: (n,) seconds. keys: by name (n,) bool. camera: (n, 2) degrees, pitch and yaw.

    buttons: (n, 2) bool, left and right.
    """

    times: Floats
    keys: dict[str, Bools]
    camera: Floats
    buttons: Bools


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read a log and write it as recordings.

    arguments: source (the log), out (a new or empty folder), fps (20), sessions (8) to cut the log into, so that some
    can be held out. Raises `UserError` for a bad argument and `DataError` for a bad log or folder, naming the line.
    """
    order = _check(arguments)
    source, out = Path(order.source), Path(order.out)
    ticks = read_log(source, context)
    recordings = _recordings(source.stem, ticks, order)
    files = [out / f"{recording.name}.npz" for recording in recordings]
    try:
        _claim(out, files)
        for done, (file, recording) in enumerate(zip(files, recordings, strict=True)):
            context.progress(done, len(files), "sessions")
            write_recording(file, recording)
    except OSError as error:
        raise DataError(f"{error.filename or out}: cannot be written ({error.strerror or error}).") from None
    frames = sum(len(recording) for recording in recordings)
    context.log(
        f"{source}: {len(ticks.times)} ticks in {ticks.times[-1] - ticks.times[0]:.1f} s became {frames} frames at "
        f"{order.fps:g} a second in {len(files)} sessions; their pose is made from the controls."
    )
    context.progress(len(files), len(files), "sessions")


def _check(arguments: Mapping[str, Any]) -> _Order:
    try:
        order = msgspec.convert(dict(arguments), _Order)
    except msgspec.ValidationError as error:
        raise UserError(f"A MineRL log cannot be parsed with these arguments: {error}.") from None
    if not 1 <= order.fps <= 1000:
        raise UserError(f"fps is {order.fps}, expected 1 to 1000 frames a second.")
    if order.sessions < 1:
        raise UserError(f"sessions is {order.sessions}, expected at least 1.")
    return order


def _claim(out: Path, files: list[Path]) -> None:
    """Make the folder; what is in it may only be an earlier result of the same work."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: is a file, expected a new or empty folder.")
    make_directory(out)
    for path in sorted(out.iterdir()):
        if path not in files:
            raise DataError(f"{out}: holds {path.name!r}, which this log does not give; choose a new or empty folder.")


def read_log(source: Path, context: TaskContext) -> Ticks:
    """Every tick of a log. A torn last line is left out, and said so; anything else that is wrong is a `DataError`."""
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{source}: cannot be read ({error.strerror or error}); expected a MineRL log.") from None
    ended = not lines[-1]
    if ended:
        lines.pop()
    ticks: list[_Tick] = []
    for number, line in enumerate(lines, 1):
        try:
            tick = msgspec.json.decode(line, type=_Tick)
        except msgspec.ValidationError as error:
            raise _bad(
                source, number, f"{error}; expected action.keyboard, action.mouse.camera and buttons, and timestamp"
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if ticks and number == len(lines) and not ended:
                context.log(f"{source} line {number}: the last line is torn and left out.")
                break
            raise _bad(source, number, f"not JSON ({error}); expected one JSON object a line, a tick each") from None
        _check_tick(source, number, tick, ticks[-1] if ticks else None)
        ticks.append(tick)
    if len(ticks) < 2:
        raise DataError(f"{source}: holds {len(ticks)} ticks, expected a MineRL log of at least two.")
    return Ticks(
        times=np.array([tick.timestamp for tick in ticks]) / 1000,
        keys={key: np.array([tick.action.keyboard[key] > 0 for tick in ticks]) for key in _KEYS},
        camera=np.array([tick.action.mouse.camera for tick in ticks]),
        buttons=np.array([[b in tick.action.mouse.buttons for b in (_LEFT_BUTTON, _RIGHT_BUTTON)] for tick in ticks]),
    )


def _check_tick(source: Path, number: int, tick: _Tick, before: _Tick | None) -> None:
    missing = [key for key in _KEYS if key not in tick.action.keyboard]
    if missing:
        raise _bad(source, number, f"action.keyboard has no {missing[0]!r}; expected every key of a MineRL log")
    if max(abs(degrees) for degrees in tick.action.mouse.camera) > 180:
        raise _bad(source, number, f"camera is {list(tick.action.mouse.camera)}, expected at most 180 degrees a tick")
    if before is None:
        return
    step = (tick.timestamp - before.timestamp) / 1000
    if step <= 0:
        raise _bad(
            source, number,
            f"timestamp {tick.timestamp:.0f} is not after {before.timestamp:.0f} of the line before; expected rising "
            "milliseconds",
        )  # fmt: skip
    if step > LONGEST_STEP:
        raise _bad(
            source, number,
            f"timestamp is {step:.0f} s after the line before, expected at most {LONGEST_STEP:g} s; cut the log there",
        )  # fmt: skip


def _bad(source: Path, line: int, what: str) -> DataError:
    return DataError(f"{source} line {line}: {what}.")


def frame_controls(ticks: Ticks, fps: float) -> tuple[Floats, Bools]:
    """The controls of every frame, (frames, 28), and whether a screen is open when it begins, (frames,).

    Movement keys and mouse buttons are on while they are held, all else fires once a press. Opposite directions cancel
    each other. While the inventory is open, buttons click in it, sneak is its shift and the mouse moves the cursor.
    """
    clock = Clock(ticks.times, fps)
    toggled, screen = _screens(ticks)
    pulses = {names.INVENTORY: toggled}
    held = np.zeros((len(ticks.times), CONTROL_SIZE), bool)
    for key, control in _HELD_KEYS.items():
        held[:, control] = ticks.keys[key] & ~screen
    held[:, [names.ATTACK, names.USE]] = ticks.buttons & ~screen[:, None]
    held[:, names.SHIFT] = ticks.keys["sneak"] & screen
    for one, other in ((names.FORWARD, names.BACK), (names.LEFT, names.RIGHT)):
        both = held[:, one] & held[:, other]
        held[both, one] = held[both, other] = False
    for key, control in _PRESSED_KEYS.items():
        pulses[control] = _presses(ticks.keys[key]) & ~screen
    for button, control in ((_LEFT_BUTTON, names.LEFT_CLICK), (_RIGHT_BUTTON, names.RIGHT_CLICK)):
        pulses[control] = _presses(ticks.buttons[:, button]) & screen

    controls = clock.held(held).astype(np.float64)
    before = np.searchsorted(clock.frame, np.arange(clock.frames)) - 1  # the last tick of the frames before
    screen_open = np.where(before >= 0, (screen ^ toggled)[before], False)
    controls[:, ACTION] *= ~screen_open[:, None]  # of keys that are held while a screen comes up
    controls[:, names.SHIFT] *= screen_open
    for control, presses in pulses.items():
        controls[:, control] = clock.pulses(presses)
    degrees = clock.moved(ticks.camera[:, ::-1] * ~screen[:, None])
    controls[:, LOOK] = limited(degrees / DEGREES_AT_FULL_LOOK, 1.0)
    latest = np.searchsorted(clock.frame, np.arange(clock.frames), side="right") - 1
    controls[:, CURSOR] = np.where(screen_open[:, None], _cursor(ticks.camera, screen)[latest], MIDDLE)
    return controls, screen_open


def _presses(held: Bools) -> Bools:
    """(ticks,): where a key goes down."""
    presses = held.copy()
    presses[1:] &= ~held[:-1]
    return presses


def _screens(ticks: Ticks) -> tuple[Bools, Bools]:
    """Whether a tick opens or closes the inventory, and whether it is open when the tick begins: (ticks,) each.

    The inventory key does both, Escape only closes; that counts as the same control, which is the one that closes.
    """
    inventory, escape = (_presses(ticks.keys[key]) for key in _SCREEN_KEYS)
    toggled, screen = np.zeros(len(inventory), bool), np.zeros(len(inventory), bool)
    is_open = False
    for tick in range(len(inventory)):
        screen[tick] = is_open
        toggled[tick] = inventory[tick] or (is_open and escape[tick])
        is_open ^= bool(toggled[tick])
    return toggled, screen


def _cursor(camera: Floats, screen: Bools) -> Floats:
    """(ticks, 2): where the cursor is, x and y in screen fractions; it starts in the middle whenever a screen opens."""
    cursor = np.full(camera.shape, MIDDLE)
    for tick in np.flatnonzero(screen).tolist():
        start = cursor[tick - 1] if screen[tick - 1] else MIDDLE
        cursor[tick] = np.clip(start + (camera[tick] * _CURSOR_PER_DEGREE)[::-1], 0, 1)
    return cursor


def _recordings(name: str, ticks: Ticks, order: _Order) -> list[Recording]:
    """The log cut into sessions of about the same length, played by one and the same made-up body."""
    controls, screen_open = frame_controls(ticks, order.fps)
    if len(controls) < order.sessions * WINDOW:
        raise UserError(
            f"The log gives {len(controls)} frames, too few for {order.sessions} sessions of at least {WINDOW}; "
            "ask for fewer sessions."
        )
    rng = np.random.default_rng(0)
    frames = pose(gestures(mimic(controls, rng), rng), order.fps, rng)
    state = implied_state(controls, screen_open, order.fps)
    digits = len(str(order.sessions - 1))
    return [
        Recording(
            name=f"{name}_{number:0{digits}d}",
            frames=frames[part],
            controls=controls[part].astype(np.float32),
            state=state[part].astype(np.float32),
            timestamps=part / order.fps,
            fps=order.fps,
            session_type=SESSION_TYPE,
            synthesised_pose=True,
        )
        for number, part in enumerate(np.array_split(np.arange(len(controls)), order.sessions))
    ]
