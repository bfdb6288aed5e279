"""A demo session is what a recorder would write: repeatable, consistent, and with something for every head."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engines.training.holdout import drawn
from projects.controls.demo.names import ATTACK, FORWARD, INVENTORY, SNEAK, SPRINT, USE
from projects.controls.demo.session import DemoSession, make_session, session_type
from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, HOTBAR, INV, LOOK, SCREEN_OPEN, STATE_NAMES
from projects.controls.masks import frame_masks
from projects.controls.recordings import Recording, read_recording, write_recording


@pytest.fixture(scope="module")
def default() -> list[Recording]:
    """The demo data as it is made by default."""
    return [make_session(seed=0, number=number, minutes=3).recording for number in range(12)]


@pytest.fixture(scope="module")
def session() -> DemoSession:
    return make_session(seed=3, number=1, minutes=3)


def test_the_same_seed_gives_the_same_bytes(session: DemoSession) -> None:
    again = make_session(seed=3, number=1, minutes=3)
    for name in ("frames", "controls", "state", "timestamps"):
        assert getattr(again.recording, name).tobytes() == getattr(session.recording, name).tobytes()
    assert again.ceiling.tobytes() == session.ceiling.tobytes()


@pytest.mark.parametrize(("seed", "number"), [(4, 1), (3, 5)])
def test_another_seed_or_number_gives_another_session(session: DemoSession, seed: int, number: int) -> None:
    other = make_session(seed=seed, number=number, minutes=3).recording
    assert other.session_type == session.recording.session_type
    assert not np.array_equal(other.controls, session.recording.controls)


def test_a_session_passes_the_reader_unchanged(session: DemoSession, tmp_path: Path) -> None:
    write_recording(tmp_path / f"{session.recording.name}.npz", session.recording)
    read = read_recording(tmp_path / f"{session.recording.name}.npz")
    for name in ("frames", "controls", "state", "timestamps"):
        assert np.array_equal(getattr(read, name), getattr(session.recording, name))
    assert (read.fps, read.session_type) == (20.0, "combat")
    assert len(read) == 3 * 60 * 20


def test_all_that_must_happen_happens_in_both_parts(default: list[Recording]) -> None:
    types = [recording.session_type for recording in default]
    assert types == [session_type(number) for number in range(12)]
    assert len(set(types)) == 4
    held_out = drawn(types, 0.2, 42)
    for part in ([r for k, r in enumerate(default) if k not in held_out], [default[k] for k in held_out]):
        controls = np.concatenate([recording.controls for recording in part])
        masks = frame_masks(controls, np.concatenate([recording.state for recording in part]))
        wanted = controls > 0.5
        assert np.all((wanted[:, ACTION] & masks.action).sum(axis=0) >= 10)
        assert np.all(wanted[masks.screen_open][:, INV].sum(axis=0) >= 10)
        assert np.all(wanted[:, HOTBAR].sum(axis=0) >= 1)
        assert np.all(np.abs(controls[masks.look][:, LOOK]).max(axis=0) > 0.2)
        assert np.all(np.ptp(controls[masks.screen_open][:, CURSOR], axis=0) > 0.3)
        assert masks.idle.mean() > 0.05


def test_rare_things_are_rare(default: list[Recording]) -> None:
    share = np.concatenate([recording.controls for recording in default]).mean(axis=0)
    for name in ("drop_item", "swap_offhand", "open_inventory"):
        assert 0.001 < share[CONTROL_NAMES.index(name)] < 0.01
    assert 0.003 < share[list(HOTBAR)].sum() < 0.02
    assert 0.2 < share[FORWARD] < 0.6


def test_controls_fit_each_other(default: list[Recording]) -> None:
    for recording in default:
        on = recording.controls > 0.5
        screen = recording.state[:, SCREEN_OPEN] > 0
        assert not on[screen][:, [c for c in ACTION if c != INVENTORY]].any()
        assert not on[~screen][:, INV].any()
        assert not (on[:, SPRINT] & ~on[:, FORWARD]).any()
        assert not (on[:, SPRINT] & on[:, SNEAK]).any()
        assert on[:, HOTBAR].sum(axis=1).max() == 1
        # a screen is open after an odd number of presses on the frames before
        assert np.array_equal(screen, (np.cumsum(on[:, INVENTORY]) - on[:, INVENTORY]) % 2 == 1)


def test_the_game_follows_the_controls(session: DemoSession) -> None:
    recording = session.recording
    state = {name: recording.state[:, column] for column, name in enumerate(STATE_NAMES)}
    on = recording.controls > 0.5
    for name, control in (("sprinting", SPRINT), ("sneaking", SNEAK), ("is_using_item", USE)):
        assert np.array_equal(state[name] > 0.5, on[:, control])
    slot, slots = 0, []
    for row in on[:, HOTBAR]:
        slot = int(row.argmax()) if row.any() else slot
        slots.append(slot / 8)
    assert np.allclose(state["hotbar_slot"], slots)
    for frame in np.flatnonzero(on[:-1, ATTACK]):
        assert state["attack_cooldown"][frame + 1] < 0.2
    assert set(np.unique(state["screen_open_type"])) == {0, np.float32(0.33)}
    for name in ("health", "hunger", "attack_cooldown", "item_use_progress", "target_distance", "time_of_day"):
        assert 0 <= state[name].min() <= state[name].max() <= 1
    assert np.array_equal(recording.state[:, :7].sum(axis=1), np.ones(len(recording)))  # one thing in the hand


def test_the_body_is_plausible(session: DemoSession) -> None:
    frames = session.recording.frames
    points = frames[:, :99].reshape(-1, 33, 3)
    assert np.abs((points[:, 23] + points[:, 24]) / 2).max() < 0.05  # the hips are the origin
    assert np.all(points[:, 0, 1] < points[:, 11, 1])  # the nose is above the shoulders: y points down
    assert np.all(points[:, 27, 1] > points[:, 25, 1] - 0.2)  # ankles below knees
    assert np.all(points[:, 11, 0] > points[:, 12, 0])  # the left shoulder is at the player's left
    assert 1.2 < (points[:, 29, 1] - points[:, 0, 1]).mean() < 1.8
    flags, visibility = frames[:, 225:227], frames[:, 227:]
    assert set(np.unique(flags)) == {0, 1}
    assert 0.95 < flags.mean() < 1
    assert 0 <= visibility.min() <= visibility.max() <= 1
    for hand, start in ((0, 99), (1, 162)):
        gone = flags[:, hand] == 0
        assert np.all(frames[gone, start : start + 63] == 0)
        assert np.all(np.abs(frames[~gone, start : start + 63]).sum(axis=1) > 0)


def test_the_body_shows_an_attack_before_it_and_nothing_on_its_frame(default: list[Recording]) -> None:
    shown: dict[int, list[float]] = {lag: [] for lag in range(-3, 8)}
    for recording in default:
        wrist = recording.frames[:, 16 * 3 + 2]  # how far the right hand is from the camera
        for frame in np.flatnonzero(recording.controls[:, ATTACK] > 0.5):
            if 10 <= frame < len(wrist) - 4:
                usual = np.median(wrist[frame - 10 : frame + 4])
                for lag, values in shown.items():
                    values.append(float(wrist[frame - lag] - usual))
    forward = {lag: -np.mean(values) for lag, values in shown.items()}
    assert max(forward, key=forward.__getitem__) == 3
    assert forward[3] > 0.15
    assert abs(forward[0]) < 0.03
    assert abs(forward[-3]) < 0.05


def test_a_posture_is_reached_before_its_control_goes_on(default: list[Recording]) -> None:
    leaning: list[float] = []
    for recording in default:
        head = recording.frames[:, 2]
        on = recording.controls[:, FORWARD] > 0.5
        began = np.flatnonzero(on[10:] & ~on[9:-1]) + 10
        leaning += (head[began - 1] - head[began - 10]).tolist()
    assert np.mean(leaning) < -0.05
