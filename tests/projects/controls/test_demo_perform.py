"""Controls follow their gestures, and the ceiling knows exactly how likely each is on every frame."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from projects.controls.demo.leads import HOLD, LONGEST, PULSES, Lead
from projects.controls.demo.names import ATTACK, FORWARD, INVENTORY, POINT_X, POINT_Y, SNEAK, SPRINT, YAW
from projects.controls.demo.perform import perform
from projects.controls.demo.script import Hold, Pulse, Script
from projects.controls.demo.session import DemoSession, make_session
from projects.controls.layout import ACTION, CURSOR, HOTBAR, INV, LOOK

PRESSED = [*ACTION, *HOTBAR, *INV]


@pytest.fixture(scope="module")
def sessions() -> list[DemoSession]:
    return [make_session(seed=5, number=number, minutes=2) for number in range(8)]


@pytest.mark.parametrize("lead", [HOLD, PULSES[ATTACK], Lead(1, (0.5, 0.25, 0.25), commit=0.6)])
def test_hazards_are_the_shares_that_drawn_leads_give(lead: Lead) -> None:
    rng = np.random.default_rng(0)
    draws = Counter(lead.draw(rng) for _ in range(20_000))
    waiting = 20_000
    for lag, hazard in lead.hazards():
        assert draws[lag] / waiting == pytest.approx(hazard, abs=5 * np.sqrt(0.25 / waiting))
        waiting -= draws[lag]
    assert waiting == draws[None]


def test_every_control_follows_its_gesture_by_two_to_five_frames() -> None:
    for lead in (HOLD, *PULSES.values()):
        assert lead.first >= 2
        assert lead.last <= LONGEST == 5
        assert sum(lead.chances) == pytest.approx(1)


def test_a_pulse_fires_once_and_is_expected_until_it_has() -> None:
    script = Script(40)
    script.pulses.append(Pulse(10, ATTACK))
    seen = set()
    for seed in range(300):
        controls, expected, _ = perform(script, np.random.default_rng(seed))
        fired = np.flatnonzero(controls[:, ATTACK]).tolist()
        seen.add(tuple(fired))
        # by hand: 97 % of the gestures are meant, of which 6, 88 and 6 % come after 2, 3 and 4 frames
        chances = {12: 0.0582, 13: 0.8536 / 0.9418, 14: 0.0582 / 0.0882}
        for frame, chance in chances.items():
            known = fired and frame > fired[0]
            assert expected[frame, ATTACK] == pytest.approx(0 if known else chance, abs=1e-4)
        assert expected[:, ATTACK].sum() == pytest.approx(sum(expected[12:15, ATTACK]))
    assert {(), (13,)} < seen <= {(), (12,), (13,), (14,)}


def test_a_posture_stays_in_force_until_the_next_takes_effect() -> None:
    script = Script(60)
    script.holds["gait"] = [Hold(10, (FORWARD, SPRINT)), Hold(30, (FORWARD, SNEAK)), Hold(45, ())]
    controls, expected, _ = perform(script, np.random.default_rng(1))
    on = {control: np.flatnonzero(controls[:, control]) for control in (FORWARD, SPRINT, SNEAK)}
    for control, (first, last) in {FORWARD: (10, 45), SPRINT: (10, 30), SNEAK: (30, 45)}.items():
        assert np.array_equal(on[control], np.arange(on[control][0], on[control][-1] + 1))
        assert 3 <= on[control][0] - first <= 5
        assert 3 <= on[control][-1] + 1 - last <= 5
    assert on[SNEAK][0] == on[SPRINT][-1] + 1
    assert np.array_equal(expected[33:36, FORWARD], [1, 1, 1])  # walking goes on whichever way it changes
    assert expected[33, SNEAK] == pytest.approx(0.06)
    assert expected[33, SPRINT] == pytest.approx(0.94)


def test_look_follows_the_head_and_the_cursor_the_hand_while_the_screen_is_open() -> None:
    script = Script(400)
    script.turn[100:110] = 0.5
    script.point[150:] = (0.3, 0.8)
    script.pulses += [Pulse(120, INVENTORY), Pulse(300, INVENTORY)]
    controls, expected, screen_open = perform(script, np.random.default_rng(2))
    assert np.flatnonzero(controls[:, YAW]).min() in (102, 103)
    assert np.all(controls[104:112, YAW] > 0.44)
    assert np.all(controls[:100, LOOK] == 0)
    assert expected[103, YAW] == pytest.approx(0.9 * 0.5)  # a lag of 2 or 3 frames has seen the head turn, one of 4 not
    opened, closed = np.flatnonzero(controls[:, INVENTORY])
    assert np.array_equal(np.flatnonzero(screen_open), np.arange(opened + 1, closed + 1))
    assert np.all(controls[~screen_open][:, CURSOR] == 0.5)
    assert np.abs(controls[200:290, [POINT_X, POINT_Y]] - (0.3, 0.8)).max() <= 0.01


def test_what_is_expected_happens_that_often(sessions: list[DemoSession]) -> None:
    """Calibration: among frames with about the same expectation, that share is pressed."""
    expected = np.concatenate([session.ceiling[:, PRESSED] for session in sessions]).ravel()
    happened = np.concatenate([session.recording.controls[:, PRESSED] for session in sessions]).ravel()
    unsure = (expected > 0.01) & (expected < 0.99)
    assert unsure.sum() > 3000
    for low, high in [(0.01, 0.2), (0.2, 0.8), (0.8, 0.92), (0.92, 0.99)]:
        kept = unsure & (expected >= low) & (expected < high)
        if kept.any():
            error = np.sqrt(np.sum(expected[kept] * (1 - expected[kept]))) / kept.sum()
            assert happened[kept].mean() == pytest.approx(expected[kept].mean(), abs=4 * error)
    assert np.array_equal(happened[expected == 0], np.zeros((expected == 0).sum()))
    assert np.array_equal(happened[expected == 1], np.ones((expected == 1).sum()))


def test_no_shift_of_the_expectation_predicts_look_and_cursor_better(sessions: list[DemoSession]) -> None:
    for columns in (LOOK, CURSOR):
        error = {
            shift: np.mean(
                [
                    np.mean((np.roll(s.ceiling[:, columns], shift, axis=0) - s.recording.controls[:, columns]) ** 2)
                    for s in sessions
                ]
            )
            for shift in (-1, 0, 1)
        }
        assert min(error, key=error.__getitem__) == 0
