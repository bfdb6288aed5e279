"""What a game is sent, by hand-made sequences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from projects.controls.layout import BINARY, CONTROL_NAMES
from projects.controls.masks import Bools, Floats
from projects.controls.policy.rules import Cursor, Hotbar, Hysteresis, Keys, Look, allowed
from projects.controls.sending import Rules

NAMES = [CONTROL_NAMES[column] for column in BINARY]
RULES = Rules.of(0.05, 0.0, {})


def hysteresis(thresholds: NDArray[np.float64], margin: float) -> Hysteresis:
    return Hysteresis(thresholds, np.full(len(thresholds), margin))


def run(rule: Hysteresis, probabilities: list[float]) -> list[bool]:
    mask = np.ones(1, np.bool_)
    return [bool(rule.step(np.array([p], np.float32), mask)[0]) for p in probabilities]


def test_hysteresis_turns_on_above_and_off_below_the_threshold() -> None:
    rule = hysteresis(np.array([0.5]), 0.05)
    assert run(rule, [0.54, 0.56, 0.5, 0.46, 0.44, 0.5, 0.56]) == [False, True, True, True, False, False, True]


def test_on_the_edge_is_on_in_either_direction() -> None:
    assert run(hysteresis(np.array([0.5]), 0.25), [0.75, 0.25, 0.2499]) == [True, True, False]


def test_without_a_margin_it_is_the_evaluations_comparison() -> None:
    random = np.random.default_rng(0)
    probabilities = random.integers(0, 11, 300).astype(np.float32) / 10  # many exactly at the threshold
    threshold = float(np.float32(0.3))
    assert run(hysteresis(np.array([threshold]), 0.0), list(probabilities)) == (probabilities >= threshold).tolist()


@pytest.mark.parametrize("threshold", [0.01, 0.03, 0.5, 0.97, 0.999])
def test_every_control_can_go_on_and_off_again(threshold: float) -> None:
    assert run(hysteresis(np.array([threshold]), 0.05), [0.0, 1.0, 0.0]) == [False, True, False]


def test_a_threshold_above_everything_never_presses() -> None:
    assert run(hysteresis(np.array([1.5]), 0.05), [1.0, 1.0]) == [False, False]


def test_what_the_mask_excludes_goes_off_and_starts_again() -> None:
    rule = hysteresis(np.array([0.5]), 0.2)
    inside = np.array([0.6], np.float32)  # only enough to stay on
    assert run(rule, [0.8]) == [True]
    assert not rule.step(inside, np.zeros(1, np.bool_))[0]
    assert run(rule, [0.6, 0.8]) == [False, True]


def on(*names: str) -> Bools:
    return np.array([name in names for name in NAMES])


def sent(keys: Keys, pressed: Bools, time: float) -> set[str]:
    return {NAMES[k] for k in np.flatnonzero(keys.step(pressed, time))}


def test_pulses_fire_on_the_rising_edge_and_not_within_the_cooldown() -> None:
    keys = Keys(RULES.holds)
    times = [0.0, 0.05, 0.1, 0.15, 0.2, 0.35, 0.4, 0.45]
    pressed = [True, True, False, True, False, True, True, False]
    # the second press at .15 comes .15 s after the first and is dropped for good; the one at .35 fires
    fired = [sent(keys, on(*["jump"] * go), time) for time, go in zip(times, pressed, strict=True)]
    assert [bool(names) for names in fired] == [True, False, False, False, False, True, False, False]


def test_each_pulse_has_a_cooldown_of_its_own() -> None:
    keys = Keys(RULES.holds)
    assert sent(keys, on("jump"), 0.0) == {"jump"}
    assert sent(keys, on("jump", "attack"), 0.1) == {"attack"}


def test_a_held_key_is_let_go_of_after_ten_seconds_until_the_model_lets_go() -> None:
    keys, frame = Keys(RULES.holds), 0.05
    held = [bool(sent(keys, on("move_forward"), k * frame)) for k in range(300)]
    assert held == [k * frame < 10 for k in range(300)]
    assert sent(keys, on(), 15.0) == set()
    assert sent(keys, on("move_forward"), 15.05) == {"move_forward"}
    assert sent(keys, on("move_forward"), 25.0) == {"move_forward"}
    assert sent(keys, on("move_forward"), 25.05) == set()


def test_which_controls_are_pulses() -> None:
    held = {name for name, hold in zip(NAMES, RULES.holds, strict=True) if hold}
    assert held == {
        "move_forward", "move_backward", "strafe_left", "strafe_right", "sprint", "sneak", "use_item", "inv_shift_held",
    }  # fmt: skip
    assert RULES.margins.tolist() == [0.05 if name in held else 0.0 for name in NAMES]
    other = Rules.of(0.05, None, {"attack": "hold", "sneak": "pulse"})
    assert {name for name, hold in zip(NAMES, other.holds, strict=True) if hold} == held - {"sneak"} | {"attack"}
    assert other.margins.tolist() == [0.05] * 15, "as in runs of earlier versions"


def test_six_frames_of_a_twentieth_are_a_cooldown_whatever_the_rounding() -> None:
    for first in range(200):
        keys = Keys(RULES.holds)
        assert sent(keys, on("jump"), first / 20) == {"jump"}
        assert sent(keys, on(), (first + 1) / 20) == set()
        assert sent(keys, on("jump"), (first + 6) / 20) == {"jump"}


def test_only_opening_the_inventory_means_something_in_both_modes() -> None:
    game, screen = allowed(False), allowed(True)
    assert [name for k, name in enumerate(NAMES) if game[k] and screen[k]] == ["open_inventory"]
    assert [name for k, name in enumerate(NAMES) if screen[k]] == [
        "open_inventory", "inv_left_click", "inv_right_click", "inv_shift_held",
    ]  # fmt: skip
    assert (game | screen).all()


def floats(*values: float) -> Floats:
    return np.array(values, np.float32)


def test_look_below_the_dead_zone_is_no_look() -> None:
    look = Look(deadzone=0.08, alpha=1.0, rate_limit=9.0)
    assert look.step(floats(0.05, 0.06)).tolist() == [0, 0]  # magnitude .0781
    assert look.step(floats(0.06, 0.06)).tolist() == pytest.approx([0.06, 0.06])  # .0849: by magnitude, not by axis


def test_look_is_averaged_then_limited() -> None:
    look = Look(deadzone=0.08, alpha=0.35, rate_limit=0.3)
    # averages .35, .5775, .725375; the first step is limited to .3, and .5775 lies within .3 of that
    found = [look.step(floats(1.0, 0.0))[0] for _ in range(3)]
    assert found == pytest.approx([0.3, 0.5775, 0.725375])
    # down again: the average falls to .471494, .254 within the limit
    assert look.step(floats(0.0, 0.0))[0] == pytest.approx(0.65 * 0.725375)


def test_the_cursor_begins_where_it_points_and_is_averaged() -> None:
    cursor = Cursor(0.5)
    assert cursor.step(floats(0.2, 0.8)).tolist() == pytest.approx([0.2, 0.8])
    assert cursor.step(floats(0.4, 0.8)).tolist() == pytest.approx([0.3, 0.8])
    cursor.reset()
    assert cursor.step(floats(0.9, 0.1)).tolist() == pytest.approx([0.9, 0.1])


def slots(best: int, confidence: float) -> Floats:
    probabilities = np.full(9, (1 - confidence) / 8, np.float32)
    probabilities[best] = confidence
    return probabilities


def test_a_slot_is_chosen_once_with_confidence_and_never_the_one_in_the_hand() -> None:
    hotbar = Hotbar(0.5)
    assert hotbar.step(slots(3, 0.49), 0, 0.0) is None
    assert hotbar.step(slots(3, 0.6), 3, 0.05) is None
    assert hotbar.step(slots(3, 0.6), 0, 0.10) == 3
    assert hotbar.step(slots(3, 0.6), 0, 0.15) is None  # the game has not caught up yet
    assert hotbar.step(slots(3, 0.6), 3, 0.20) is None
    assert hotbar.step(slots(3, 0.6), 0, 0.60) == 3  # the game says otherwise for long: asked again


def test_slot_zero_is_a_slot() -> None:
    hotbar = Hotbar(0.5)
    assert hotbar.step(slots(0, 0.9), 0, 0.0) is None
    assert hotbar.step(slots(0, 0.9), 4, 0.05) == 0


def test_without_a_game_that_tells_the_slot_the_last_choice_is_in_the_hand() -> None:
    hotbar = Hotbar(0.5)
    assert [hotbar.step(slots(best, 0.9), None, float(k)) for k, best in enumerate([2, 2, 5, 2])] == [2, None, 5, 2]
