"""VPT contractor logs: known controls that are written as such a log come back; and what such logs can be missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.controls.demo.names import (
    ATTACK,
    BACK,
    DROP,
    FIRST_SLOT,
    FORWARD,
    INVENTORY,
    JUMP,
    LEFT,
    LEFT_CLICK,
    PITCH,
    POINT_X,
    POINT_Y,
    RIGHT,
    RIGHT_CLICK,
    SHIFT,
    SNEAK,
    SPRINT,
    SWAP,
    USE,
    YAW,
)
from projects.controls.importers.task import parse
from projects.controls.layout import ACTION, CURSOR, DEFAULT_STATE, HOTBAR, INV, LOOK, SCREEN_OPEN, STATE_NAMES
from projects.controls.recordings import Recording, read_folder
from tests.projects.controls.task_context import Listener

Line = dict[str, Any]
Controls = NDArray[np.float32]
HELD_KEYS = {FORWARD: "w", BACK: "s", LEFT: "a", RIGHT: "d", SPRINT: "left.control", SNEAK: "left.shift", JUMP: "space"}
TAPPED_KEYS = {DROP: "q", SWAP: "f", INVENTORY: "e"}


def known_session(frames: int, seed: int) -> tuple[Controls, NDArray[np.int64], NDArray[np.int64]]:
    """What a person may do in `frames` frames of 20 a second: controls (frames, 28), screen (0, 1 inventory, 2 other)
    and hotbar slot of each."""
    rng = np.random.default_rng(seed)
    controls = np.zeros((frames, 28), np.float32)
    stretches = np.repeat(rng.integers(0, 2, (frames // 5 + 1, len(ACTION))), 5, axis=0)[:frames]
    controls[:, ACTION] = stretches
    for one, other in ((FORWARD, BACK), (LEFT, RIGHT)):
        controls[(controls[:, one] == 1) & (controls[:, other] == 1), other] = 0
    controls[:, [DROP, SWAP, INVENTORY]] = rng.random((frames, 3)) < 0.15
    controls[:, LOOK] = rng.integers(-100, 101, (frames, 2)) / 100 * (rng.random((frames, 1)) < 0.7)
    screen = np.repeat(rng.choice([0, 0, 1, 2], frames // 7 + 1), 7)[:frames]
    slot = np.repeat(rng.integers(0, 9, frames // 11 + 1), 11)[:frames]
    changed = np.flatnonzero(np.diff(slot)) + 1
    controls[changed, FIRST_SLOT + slot[changed]] = 1
    is_open = screen > 0
    controls[:, INV] = rng.random((frames, 3)) < 0.3
    controls[~is_open, INV[0] :] = 0
    controls[:, CURSOR] = np.where(is_open[:, None], rng.integers(0, (1281, 721), (frames, 2)) / (1280, 720), 0.5)
    of_the_game = [control for control in (*ACTION, *LOOK) if control != INVENTORY]
    controls[:, of_the_game] *= ~is_open[:, None]
    controls[0, [ATTACK, LEFT_CLICK]] = 0  # on the first line of a log they count for stuck
    return controls, screen, slot


def written(controls: Controls, screen: NDArray[np.int64], slot: NDArray[np.int64]) -> list[Line]:
    """The same as the lines of a log: only what goes down on a tick is new on it."""
    lines = []
    for frame, row in enumerate(controls):
        keys = [f"key.keyboard.{key}" for control, key in HELD_KEYS.items() if row[control]]
        keys += ["key.keyboard.left.shift"] if row[SHIFT] else []
        new = [f"key.keyboard.{key}" for control, key in TAPPED_KEYS.items() if row[control]]
        buttons = [button for button, control in enumerate((ATTACK, USE)) if row[control]]
        clicks = [button for button, control in enumerate((LEFT_CLICK, RIGHT_CLICK)) if row[control]]
        x, y = row[CURSOR[0] :][:2].astype(np.float64) * (1280, 720)
        dx, dy = np.round(row[LOOK[0] :][:2].astype(np.float64) * 100)
        lines.append(
            {
                "mouse": {"x": x, "y": y, "dx": dx, "dy": dy, "dwheel": 0.0, "buttons": buttons + clicks,
                          "newButtons": clicks},
                "keyboard": {"keys": keys + new, "newKeys": new, "chars": ""},
                "isGuiOpen": bool(screen[frame]), "isGuiInventory": bool(screen[frame] == 1),
                "hotbar": int(slot[frame]), "yaw": -112.35, "pitch": 8.1, "tick": 700 + frame,
                "milli": 1649575088006 + 50 * frame + frame % 3,
                "inventory": [{"type": "oak_door", "quantity": 3}], "stats": {"minecraft.custom:minecraft.jump": 4},
            }
        )  # fmt: skip
    return lines


def parsed(folder: Path, lines: list[Line], **arguments: Any) -> tuple[list[Recording], list[str]]:
    log, listener = folder / "log.jsonl", Listener()
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    parse({"source": str(log), "out": str(folder / "out"), **arguments}, listener)
    return read_folder(folder / "out"), listener.lines


def line(at: int, keys: str = "", new: str = "", mouse: dict[str, Any] | None = None, **more: Any) -> Line:
    """A line of a log at tick `at`, with the letters in `keys` held and those in `new` just pressed."""
    named = [[f"key.keyboard.{key}" for key in some] for some in (keys, new)]
    still = {"x": 640, "y": 360, "dx": 0, "dy": 0, "buttons": [], "newButtons": []}
    whole = {
        "mouse": still | (mouse or {}), "keyboard": {"keys": named[0], "newKeys": named[1]}, "isGuiOpen": False,
        "isGuiInventory": False, "hotbar": 0, "yaw": 0.0, "pitch": 0.0, "tick": at, "milli": 1000 + 50 * at,
    }  # fmt: skip
    return {key: value for key, value in (whole | more).items() if value is not None}


def frames_on(recording: Recording, control: int) -> list[int]:
    return np.flatnonzero(recording.controls[:, control] > 0.5).tolist()


@settings(max_examples=15, deadline=None)
@given(frames=st.integers(60, 300), seed=st.integers(0, 2**32), sessions=st.integers(1, 2))
def test_known_controls_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, frames: int, seed: int, sessions: int
) -> None:
    controls, screen, slot = known_session(frames, seed)
    recordings, _ = parsed(tmp_path_factory.mktemp("vpt"), written(controls, screen, slot), sessions=sessions)
    assert len(recordings) == sessions
    np.testing.assert_array_equal(np.concatenate([recording.controls for recording in recordings]), controls)
    state = np.concatenate([recording.state for recording in recordings])
    expected = np.tile(DEFAULT_STATE, (frames, 1))
    expected[:, SCREEN_OPEN] = np.array([0, 0.33, 1])[screen]
    expected[:, STATE_NAMES.index("hotbar_slot")] = slot / 8
    np.testing.assert_array_equal(state, expected)
    assert all(recording.synthesised_pose and recording.session_type == "vpt" for recording in recordings)


def test_every_control_is_in_the_known_sessions() -> None:
    controls, screen, _ = known_session(300, 0)
    assert (controls != 0).any(axis=0).all()
    assert set(screen) == {0, 1, 2}
    assert controls[:, HOTBAR].sum(axis=1).max() == 1


def test_at_another_rate_presses_and_turns_keep_their_sums(tmp_path: Path) -> None:
    controls, screen, slot = known_session(300, 1)
    controls[:, LOOK] *= 0.1  # so that no turn waits for the end of the log
    lines = written(controls, screen, slot)
    for fps in (10, 30, 60):
        (tmp_path / str(fps)).mkdir()
        (recording,), _ = parsed(tmp_path / str(fps), lines, sessions=1, fps=fps)
        assert len(recording) == 300 * fps // 20
        turned = recording.controls[:, LOOK].astype(np.float64).sum(axis=0)
        assert turned.tolist() == pytest.approx((lines_turn(lines) / 15).tolist(), abs=1e-4)
        assert recording.controls[:, HOTBAR].sum() == controls[:, HOTBAR].sum()
        if fps >= 20:
            for control in (DROP, SWAP, INVENTORY, LEFT_CLICK, RIGHT_CLICK):
                assert recording.controls[:, control].sum() == controls[:, control].sum()


def lines_turn(lines: list[Line]) -> NDArray[np.float64]:
    """Degrees in all, from the pixels of the mouse."""
    pixels = np.array([(one["mouse"]["dx"], one["mouse"]["dy"]) for one in lines], np.float64)
    turn: NDArray[np.float64] = pixels.sum(axis=0) * 360 / 2400
    return turn


def test_without_the_mouse_the_view_says_the_turn(tmp_path: Path) -> None:
    lines = [line(k, mouse=None, yaw=(210 - 3 * k) % 360 - 180, pitch=-1.5 * min(k, 20)) for k in range(40)]
    for one in lines:
        del one["mouse"]
    (recording,), said = parsed(tmp_path, lines, sessions=1)
    assert recording.controls[:, YAW] * 15 == pytest.approx([0, *[-3] * 39], abs=1e-5)
    assert recording.controls[:, PITCH] * 15 == pytest.approx([0, *[-1.5] * 20, *[0] * 19], abs=1e-5)
    assert any("40 lines have no mouse, the first is line 1" in text for text in said)


def test_without_the_slot_number_keys_choose_it(tmp_path: Path) -> None:
    lines = [line(k, new={5: "3", 9: "12"}.get(k, ""), hotbar=None) for k in range(40)]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert np.argwhere(recording.controls[:, HOTBAR]).tolist() == [[5, 2], [9, 1]]


def test_without_new_keys_what_goes_down_is_new(tmp_path: Path) -> None:
    lines = [line(k, keys="wq" if k in (3, 4, 7) else "w") for k in range(40)]
    for one in lines:
        del one["keyboard"]["newKeys"]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert frames_on(recording, DROP) == [3, 7]
    assert frames_on(recording, FORWARD) == list(range(40))


def test_a_tap_shorter_than_a_tick_counts(tmp_path: Path) -> None:
    lines = [line(k, new="w" if k == 5 else "", mouse={"newButtons": [1] if k == 8 else []}) for k in range(40)]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert (frames_on(recording, FORWARD), frames_on(recording, USE)) == ([5], [8])


def test_a_button_stuck_from_the_start_counts_once_it_is_pressed_again(tmp_path: Path) -> None:
    new = {0: [0], 20: [0]}
    lines = [line(k, mouse={"buttons": [0], "newButtons": new.get(k, [])}) for k in range(40)]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert frames_on(recording, ATTACK) == list(range(20, 40))


def test_escape_closes_what_is_open_and_the_cursor_stays_in_the_screen(tmp_path: Path) -> None:
    lines = [line(k) for k in range(10)]
    lines += [line(k, isGuiOpen=True, mouse={"x": -50, "y": 9999}) for k in range(10, 20)]
    lines += [line(20, isGuiOpen=True)] + [line(k) for k in range(21, 40)]
    for at in (20, 30):
        lines[at]["keyboard"]["newKeys"] = ["key.keyboard.escape"]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert frames_on(recording, INVENTORY) == [20]
    assert recording.controls[15, [POINT_X, POINT_Y]].tolist() == [0, 1]
    assert np.flatnonzero(recording.state[:, SCREEN_OPEN] == 1).tolist() == list(range(10, 21))


@pytest.mark.parametrize(
    ("moved", "where"),
    [
        (lambda k, one: one | {"tick": k - 500, "milli": 50 * k}, "goes back"),
        (lambda k, one: one | {"tick": k + 10_000}, "jumps ahead"),
        (lambda k, one: one | {"milli": one["milli"] + 60_000}, "paused"),
    ],
    ids=["the clock starts anew", "lines are missing", "the game was paused"],
)
def test_what_happened_in_a_gap_is_not_made_up(tmp_path: Path, moved: Callable[[int, Line], Line], where: str) -> None:
    lines = [line(k, keys="w", hotbar=0, mouse={"dx": None}, yaw=0.0) for k in range(40)]
    lines += [moved(k, line(k, keys="s", hotbar=4, mouse={"dx": None}, yaw=90.0)) for k in range(40, 80)]
    recordings, said = parsed(tmp_path, lines, sessions=2)
    assert [len(recording) for recording in recordings] == [40, 40]
    assert "cut into 2 sittings where the time goes back or jumps by more than 10 s, before line 41." in said[1], where
    assert frames_on(recordings[0], FORWARD) == frames_on(recordings[1], BACK) == list(range(40))
    assert not recordings[1].controls[:, [*HOTBAR, *LOOK]].any()


def test_sittings_shorter_than_a_window_are_left_out(tmp_path: Path) -> None:
    lines = [line(k + (1000 if k > 4 else 0)) for k in range(45)]
    (recording,), said = parsed(tmp_path, lines, sessions=1)
    assert len(recording) == 40
    assert any("1 sittings of fewer than 30 frames are left out" in text for text in said)
    with pytest.raises(DataError, match="gives 5 frames at 20 a second in its longest sitting, expected at least 30"):
        parsed(tmp_path, [line(300 * (k // 5) + k) for k in range(45)])


def test_ticks_that_are_missing_last_longer(tmp_path: Path) -> None:
    lines = [line(k, keys="w" if k == 10 else "") for k in range(40) if not 11 <= k < 15]
    (recording,), _ = parsed(tmp_path, lines, sessions=1)
    assert len(recording) == 40
    assert frames_on(recording, FORWARD) == [10, 11, 12, 13, 14]


def test_a_repeated_line_is_left_out(tmp_path: Path) -> None:
    lines = [line(k, mouse={"dx": 10}) for k in range(40)]
    (recording,), said = parsed(tmp_path, [*lines[:20], lines[19], lines[19], *lines[20:]], sessions=1)
    assert recording.controls[:, YAW] == pytest.approx(0.1)
    assert any("2 lines repeat the line before and are left out, the first is line 21" in text for text in said)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (line(1, tick=None), "line 2: has no tick; expected mouse, keyboard"),
        (line(1, hotbar=9), r"line 2: Expected `int` <= 8 - at `\$.hotbar`; expected"),
        (line(1, keyboard=None), "line 2: Object missing required field `keyboard`; expected"),
        (line(1, mouse={"dx": 1e6}), "line 2: the view turns by 150000 degrees, expected at most 180 a tick"),
        (line(0, keys="w"), "line 2: has the time of line 1 and says something else; expected rising times"),
        (line(1, tick=10**30), r"line 2: Expected `int` <= 9007199254740992 - at `\$.tick`"),
        (line(1, milli=float("nan")), "line 2: not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: Line, said: str) -> None:
    lines = [line(0), bad, *[line(k) for k in range(2, 40)]]
    with pytest.raises(DataError, match=said):
        parsed(tmp_path, lines)
    assert not (tmp_path / "out").exists()
