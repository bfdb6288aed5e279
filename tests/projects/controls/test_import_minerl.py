"""MineRL logs become recordings: counted against the log itself, and every fault told with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError, UserError
from engines.tasks import StopRequested
from projects.controls.demo.names import (
    ATTACK,
    DROP,
    FIRST_SLOT,
    FORWARD,
    INVENTORY,
    JUMP,
    LEFT_CLICK,
    PITCH,
    POINT_X,
    POINT_Y,
    SHIFT,
    SNEAK,
    SWAP,
    YAW,
)
from projects.controls.importers.task import parse
from projects.controls.layout import ACTION, HOTBAR, LOOK, SCREEN_OPEN, STATE_NAMES, WINDOW
from projects.controls.recordings import Recording, read_folder
from tests.projects.controls.task_context import Listener

REAL = Path(__file__).parents[4] / "shared" / "data" / "minecraft" / "minerl_study_mc-0.jsonl"
KEYS = (
    "ESC back drop forward hotbar.1 hotbar.2 hotbar.3 hotbar.4 hotbar.5 hotbar.6 hotbar.7 hotbar.8 hotbar.9 inventory "
    "jump left pickItem right sneak sprint swapHands"
).split()
Tick = dict[str, Any]


def tick(at: float, *keys: str, camera: tuple[float, float] = (0, 0), buttons: tuple[int, ...] = ()) -> Tick:
    keyboard = {key: int(key in keys) for key in KEYS}
    return {"action": {"keyboard": keyboard, "mouse": {"camera": camera, "buttons": buttons}}, "timestamp": at}


def parsed(tmp_path: Path, ticks: list[Tick], sessions: int = 1) -> list[Recording]:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in ticks))
    parse({"source": str(log), "out": str(tmp_path / "out"), "sessions": sessions}, Listener())
    return read_folder(tmp_path / "out")


def frames_on(recording: Recording, control: int) -> list[int]:
    return np.flatnonzero(recording.controls[:, control] > 0.5).tolist()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Tick], list[Recording], Listener]:
    if not REAL.is_file():
        pytest.skip("the human log is not beside this project (../shared/data/minecraft)")
    out, listener = tmp_path_factory.mktemp("real"), Listener()
    parse({"source": str(REAL), "out": str(out)}, listener)
    return [json.loads(line) for line in REAL.read_text().splitlines()], read_folder(out), listener


class TestRealLog:
    def test_it_becomes_enough_sessions_at_a_steady_rate(
        self, real: tuple[list[Tick], list[Recording], Listener]
    ) -> None:
        ticks, recordings, listener = real
        assert len(recordings) == 8
        seconds = (ticks[-1]["timestamp"] - ticks[0]["timestamp"]) / 1000
        times = np.concatenate([recording.timestamps for recording in recordings])
        np.testing.assert_allclose(np.diff(times), 0.05)
        assert seconds <= times[-1] + 0.05 <= seconds + 0.15
        assert all(recording.synthesised_pose and recording.session_type == "minerl" for recording in recordings)
        assert min(map(len, recordings)) > WINDOW
        assert "a minerl log of 2539 ticks in 166.3 s" in listener.lines[0]
        assert "3327 frames in 8 sessions" in listener.lines[-1]
        assert listener.told[-1] == (8, 8, "sessions")

    @pytest.mark.parametrize(
        ("control", "held"),
        [
            (FORWARD, lambda one: one["action"]["keyboard"]["forward"] and not one["action"]["keyboard"]["back"]),
            (JUMP, lambda one: one["action"]["keyboard"]["jump"]),
            (ATTACK, lambda one: 0 in one["action"]["mouse"]["buttons"]),
        ],
    )
    def test_keys_go_down_as_often_and_stay_as_long(
        self, real: tuple[list[Tick], list[Recording], Listener], control: int, held: Callable[[Tick], Any]
    ) -> None:
        ticks, recordings, _ = real
        on = [bool(held(one)) for one in ticks]
        times = [one["timestamp"] for one in ticks]
        presses = sum(now and not before for before, now in zip([False, *on], on, strict=False))
        seconds = sum((end - start) / 1000 for start, end, now in zip(times, times[1:], on, strict=False) if now)
        frames = np.concatenate([recording.controls[:, control] for recording in recordings]) > 0.5
        assert (frames & ~np.concatenate([[False], frames[:-1]])).sum() == presses
        # a press begins and ends inside a frame, so it may be half a frame longer or shorter at each end
        assert frames.sum() / 20 == pytest.approx(seconds, abs=0.05 * presses)

    def test_every_degree_turned_is_kept(self, real: tuple[list[Tick], list[Recording], Listener]) -> None:
        ticks, recordings, _ = real
        pitch, yaw = (sum(one["action"]["mouse"]["camera"][axis] for one in ticks) for axis in (0, 1))
        look = np.concatenate([recording.controls[:, LOOK] for recording in recordings]).astype(np.float64)
        assert (look.sum(axis=0) * 15).tolist() == pytest.approx([yaw, pitch], abs=1e-3)
        assert np.abs(look).max() <= 1

    def test_the_made_up_pose_leads(self, real: tuple[list[Tick], list[Recording], Listener]) -> None:
        _, recordings, _ = real
        head = np.concatenate([recording.frames[:, 2] for recording in recordings])
        walking = np.concatenate([recording.controls[:, FORWARD] for recording in recordings])
        last = len(head) - 10
        lean = [np.corrcoef(-head[:last], walking[lag : last + lag])[0, 1] for lag in range(10)]
        assert 2 <= np.argmax(lean) <= 5


def test_presses_fire_once_and_slots_are_one_hot(tmp_path: Path) -> None:
    held = dict.fromkeys((3, 4, 30), ("drop",)) | {10: ("swapHands",), 20: ("hotbar.3",), 21: ("hotbar.3", "hotbar.9")}
    (recording,) = parsed(tmp_path, [tick(1000 + 50 * k, *held.get(k, ())) for k in range(60)])
    assert frames_on(recording, DROP) == [3, 30]
    assert frames_on(recording, SWAP) == [10]
    assert {slot + 1: frames_on(recording, FIRST_SLOT + slot) for slot in (2, 8)} == {3: [20], 9: [21]}
    assert recording.controls[:, HOTBAR].sum() == 2
    slot = recording.state[:, STATE_NAMES.index("hotbar_slot")]
    assert slot[[0, 19, 20, 21, 59]].tolist() == pytest.approx([0, 0, 2 / 8, 1, 1])


def test_opposite_keys_cancel_each_other(tmp_path: Path) -> None:
    keys = [("forward",)] * 20 + [("forward", "back")] * 20 + [("back", "left", "right")] * 20
    (recording,) = parsed(tmp_path, [tick(50 * k, *held) for k, held in enumerate(keys)])
    assert recording.controls[:, :4].sum(axis=0).tolist() == [20, 20, 0, 0]


def test_while_the_inventory_is_open_the_mouse_works_in_it(tmp_path: Path) -> None:
    ticks = [tick(50 * k, "forward", camera=(0, 1.5)) for k in range(20)]
    ticks += [tick(1000, "inventory", "forward", camera=(0, 1.5))]
    clicked = dict.fromkeys((2, 3, 6), (0,))
    ticks += [tick(1050 + 50 * k, "sneak", "forward", camera=(3, -6), buttons=clicked.get(k, ())) for k in range(10)]
    ticks += [tick(1550, "ESC"), *[tick(1600 + 50 * k, "sneak", buttons=(0,), camera=(-1.5, 0)) for k in range(20)]]
    (recording,) = parsed(tmp_path, ticks)
    assert frames_on(recording, INVENTORY) == [20, 31]
    assert np.flatnonzero(recording.state[:, SCREEN_OPEN] > 0).tolist() == list(range(21, 32))
    assert frames_on(recording, FORWARD) == list(range(21))
    assert frames_on(recording, SHIFT) == list(range(21, 31))
    assert frames_on(recording, SNEAK) == frames_on(recording, ATTACK) == list(range(32, 52))
    assert frames_on(recording, LEFT_CLICK) == [23, 27]
    assert recording.controls[:21, YAW] == pytest.approx(0.1)
    assert np.all(recording.controls[21:32, LOOK] == 0)
    assert recording.controls[32:, PITCH] == pytest.approx(-0.1)
    # a degree is 2400/360 pixels of a 1280 × 720 screen
    assert recording.controls[21, POINT_X] == pytest.approx(0.5 - 6 * 2400 / 360 / 1280)
    assert recording.controls[30, POINT_Y] == pytest.approx(0.5 + 10 * 3 * 2400 / 360 / 720)
    assert np.all(recording.controls[:21, [POINT_X, POINT_Y]] == 0.5)
    assert not recording.controls[21:31, [c for c in ACTION if c != INVENTORY]].any()


def test_a_turn_too_fast_for_full_look_is_finished_in_the_next_frames(tmp_path: Path) -> None:
    ticks = [tick(50 * k, camera=(0, 40) if k == 10 else (0, 0)) for k in range(40)]
    (recording,) = parsed(tmp_path, ticks)
    assert recording.controls[9:14, YAW] * 15 == pytest.approx([0, 15, 15, 10, 0], abs=1e-4)


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    log, listener = tmp_path / "log.jsonl", Listener()
    log.write_text("".join(json.dumps(tick(50 * k)) + "\n" for k in range(40)) + '{"action": {"keyb')
    parse({"source": str(log), "out": str(tmp_path / "out"), "sessions": 1}, listener)
    assert listener.lines[0] == f"{log} line 41: the last line is torn and left out."
    assert "40 ticks" in listener.lines[1]
    assert len(read_folder(tmp_path / "out")[0]) == 40


def without(path: str) -> str:
    """A tick whose member at `path` is missing."""
    one = tick(100)
    *parents, last = path.split("/")
    inner = one
    for name in parents:
        inner = inner[name]
    del inner[last]
    return json.dumps(one)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("forward 1", "line 3: not JSON"),
        ("", "line 3: not JSON"),
        ("\xff", "line 3: not JSON"),
        ("[]", "line 3: Expected `object`, got `array`; expected action.keyboard"),
        (without("timestamp"), "line 3: Object missing required field `timestamp`"),
        (without("action/mouse/camera"), r"line 3: Object missing required field `camera` - at `\$.action.mouse`"),
        (without("action/keyboard/jump"), "line 3: action.keyboard has no 'jump'"),
        (json.dumps(tick(100, camera=(0, 1e9))), "line 3: the view turns by 1e\\+09 degrees, expected at most 180"),
        (json.dumps(tick(50, "jump")), "line 3: has the time of line 2 and says something else; expected rising times"),
        (json.dumps(tick(100)).replace("100", "1e999"), "line 3: Number out of range"),
        (json.dumps(tick(100)).replace("100", "NaN"), "line 3: not JSON"),
        (json.dumps(tick(100) | {"pad": "x" * 2**20}), "line 3: has more than 1048576 bytes"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    log = tmp_path / "log.jsonl"
    lines = [json.dumps(tick(0)), json.dumps(tick(50)), line, *[json.dumps(tick(150 + 50 * k)) for k in range(50)]]
    log.write_bytes("\n".join(lines).encode("latin-1") + b"\n")
    with pytest.raises(DataError, match=said) as caught:
        parse({"source": str(log), "out": str(tmp_path / "out"), "sessions": 1}, Listener())
    assert str(caught.value).startswith(f"{log} line 3: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "gives 0 frames at 20 a second, expected at least 30"),
        (json.dumps(tick(0)) + "\n", "gives 1 frames at 20 a second, expected at least 30"),
        ("{", "line 1: not JSON"),
    ],
)
def test_a_log_of_nothing_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(DataError, match=said):
        parse({"source": str(tmp_path / "log.jsonl"), "out": str(tmp_path / "out"), "kind": "minerl"}, Listener())


def test_a_missing_log_is_told(tmp_path: Path) -> None:
    for kind in (None, "minerl", "list"):
        with pytest.raises(DataError, match=r"nowhere\.jsonl: cannot be read"):
            parse({"source": str(tmp_path / "nowhere.jsonl"), "out": str(tmp_path / "out"), "kind": kind}, Listener())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fps": 0.0}, "fps is 0.0, expected a number from 1 to 1000"),
        ({"sessions": 0}, "sessions is 0, expected a whole number from 1 to 10000"),
        ({"kind": "vtp"}, r"kind is 'vtp', expected minerl, vpt, list or v1 \(did you mean 'vpt'\?\)"),
        ({"session": 2}, "session is no argument"),
    ],
)
def test_bad_arguments_are_told(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(tick(50 * k)) + "\n" for k in range(100)))
    with pytest.raises(UserError, match=said) as caught:
        parse({"source": str(log), "out": str(tmp_path / "out"), **changes}, Listener())
    assert caught.value.exit_code == 2


def test_only_its_own_folder_is_written(tmp_path: Path) -> None:
    ticks = [tick(50 * k) for k in range(100)]
    before = parsed(tmp_path, ticks, sessions=2)
    again = parsed(tmp_path, ticks, sessions=2)
    assert all(np.array_equal(a.frames, b.frames) for a, b in zip(before, again, strict=True))
    (tmp_path / "out" / "notes.txt").write_text("precious")
    with pytest.raises(DataError, match=r"holds 'notes\.txt', which this task does not make"):
        parsed(tmp_path, ticks, sessions=2)


def test_a_log_too_short_for_the_sessions_asked_for_gives_fewer_and_says_so(tmp_path: Path) -> None:
    log, listener = tmp_path / "log.jsonl", Listener()
    log.write_text("".join(json.dumps(tick(50 * k)) + "\n" for k in range(100)))
    parse({"source": str(log), "out": str(tmp_path / "out"), "sessions": 5}, listener)
    assert [len(recording) for recording in read_folder(tmp_path / "out")] == [34, 33, 33]
    assert "100 frames in 3 sessions." in listener.lines[-1]
    assert "too short for 5 sessions of at least 30 frames" in listener.lines[-1]


def test_stop_leaves_whole_recordings_or_none(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(tick(50 * k)) + "\n" for k in range(100)))
    arguments = {"source": str(log), "out": str(tmp_path / "out"), "sessions": 3}
    with pytest.raises(StopRequested):
        parse(arguments, Listener(stop_at=log.stat().st_size // 1000))  # while it reads
    assert not (tmp_path / "out").exists()
    with pytest.raises(StopRequested):
        parse(arguments, Listener(stop_at=2))
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["log_0.npz", "log_1.npz"]
    parse(arguments, Listener())
    assert len(read_folder(tmp_path / "out")) == 3
