"""What is sent at a threshold, against the rules of docs/controls.md carried out frame by frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.thresholds.objectives import F1_LESS_ALARMS
from engines.thresholds.search import exact_optimum
from projects.controls.layout import ACTION, BINARY, OPEN_INVENTORY
from projects.controls.policy.rules import Hysteresis, Keys, allowed
from projects.controls.sending import Rules, asked, clamped, presses, streams, through_margin
from projects.controls.thresholds import NAMES, THRESHOLDS, sent_controls
from tests.support.fake_review import review_arrays

RULES = Rules.of(0.05, 0.0, {"attack": "hold", "sneak": "pulse"})


def review(frames: int = 900, seed: int = 0, step: float = 0.05) -> dict[str, NDArray[Any]]:
    """Three sessions of probabilities that wander, a screen now and then, gaps, and a clock that stands still once."""
    random = np.random.default_rng(seed)
    arrays = review_arrays(frames, 3, seed)
    logits = np.zeros((frames, len(NAMES)))
    for k in range(1, frames):
        logits[k] = 0.9 * logits[k - 1] + random.normal(0, 0.5, len(NAMES))
    arrays["scores"] = (1 / (1 + np.exp(-logits))).astype(np.float32)
    arrays["scores"][:, 0] = 0.9 + 0.05 * random.random(frames)  # held throughout
    screen = np.repeat(random.random(frames // 30) < 0.3, 30)
    arrays["masks"][:] = np.repeat([~screen, screen], [len(ACTION), 3], axis=0).T
    arrays["masks"][:, OPEN_INVENTORY] = True
    arrays["idle"] = ~screen & ~arrays["targets"][:, :12].any(axis=1)
    steps = np.full(frames, step)
    steps[random.choice(frames, 6)] = 0.7
    steps[random.choice(frames, 2)] = 0.0
    return {**arrays, "times": np.cumsum(steps)}


def as_documented(arrays: dict[str, NDArray[Any]], k: int, threshold: float, margin: float, hold: bool) -> list[bool]:
    """Rules 1 to 6 for one control, a frame at a time."""
    sent, on, since, fired, buffered = [], False, math.nan, -math.inf, 0
    kept = min(margin, threshold / 2, (1 - threshold) / 2)
    for row, p in enumerate(arrays["scores"][:, k].tolist()):
        time = float(arrays["times"][row])
        if row == 0 or arrays["groups"][row] != arrays["groups"][row - 1]:
            on, fired, buffered = False, -math.inf, 30
        elif not 0 < time - float(arrays["times"][row - 1]) <= 0.5:
            on, fired, buffered = False, -math.inf, 0
        buffered += 1
        was = on
        on = p >= threshold - kept if was else p >= threshold + kept
        on = on and bool(arrays["masks"][row, k]) and buffered >= 3
        if on and not was:
            since = time
        if hold:
            sent.append(on and round(time - since, 6) < 10)
        else:
            fire = on and not was and round(time - fired, 6) >= 0.3
            fired = time if fire else fired
            sent.append(fire)
    return sent


@pytest.mark.parametrize("step", [0.05, 1 / 30, 0.45])
def test_what_is_sent_is_what_the_documented_rules_say(step: float) -> None:
    arrays = review(step=step)
    random = np.random.default_rng(1)
    released = cooled = 0
    for thresholds in random.random((6, len(NAMES))):
        sent = sent_controls(arrays, RULES, thresholds)
        for k, threshold in enumerate(thresholds.tolist()):
            expected = as_documented(arrays, k, threshold, float(RULES.margins[k]), bool(RULES.holds[k]))
            assert sent[:, k].tolist() == expected, NAMES[k]
        free = sent_controls(arrays, Rules(RULES.margins, np.ones(15, np.bool_)), thresholds)
        released += int((free[:, 0] != (arrays["scores"][:, 0] >= thresholds[0])).sum())
        cooled += int(sent[:, ~RULES.holds].sum())
    assert released > 0, "some key is held for over ten seconds"
    assert cooled > 30


def test_pulses_side_by_side_are_one_after_the_other() -> None:
    """Noise presses every other frame or so, for minutes: each pulse that fires decides which one may be next."""
    arrays = review(6000, 5)
    arrays["scores"] = np.random.default_rng(6).random(arrays["scores"].shape).astype(np.float32)
    arrays["times"] = np.arange(6000) / 20
    sent = sent_controls(arrays, RULES, np.full(len(NAMES), 0.5))
    for name in ("jump", "drop_item", "inv_left_click"):
        k = NAMES.index(name)
        assert sent[:, k].tolist() == as_documented(arrays, k, 0.5, 0.0, hold=False), name


def test_the_policy_carries_out_the_same_rules() -> None:
    """Its own parts, frame by frame, on streams without a break but the sessions' own."""
    arrays = review(600, 2)
    arrays["times"] = np.arange(600) / 20
    thresholds = np.random.default_rng(3).uniform(0.2, 0.8, len(NAMES))
    sent = sent_controls(arrays, RULES, thresholds)
    binary, keys = Hysteresis(thresholds, RULES.margins), Keys(RULES.holds)
    for row, p in enumerate(arrays["scores"]):
        if row and arrays["groups"][row] != arrays["groups"][row - 1]:
            binary.reset()
            keys.reset()
        on = binary.step(p, allowed(bool(arrays["masks"][row, 12])))
        assert np.array_equal(keys.step(on, float(arrays["times"][row])), sent[row]), row


def test_a_held_key_is_tuned_by_what_is_on_after_hysteresis() -> None:
    arrays = {**review(seed=4), "margins": RULES.margins, "holds": RULES.holds}
    for name in ("strafe_left", "attack"):
        head = next(head for head in THRESHOLDS.heads(arrays) if head.name == name)
        k = NAMES.index(name)
        kept = arrays["masks"][:, k]

        def reached(threshold: float, k: int = k, kept: NDArray[np.bool_] = kept) -> float:
            on = np.array(as_documented(arrays, k, threshold, 0.05, True))[kept]
            target, idle = arrays["targets"][kept, k], arrays["idle"][kept]
            return float(2 * (on & target).sum() / (on.sum() + target.sum()) - 0.5 * on[idle].mean())

        found = exact_optimum(head)
        assert head.objective is F1_LESS_ALARMS
        assert reached(found.threshold) == pytest.approx(found.objective)
        assert found.objective >= max(reached(t) for t in np.linspace(0.01, 0.99, 99).tolist()) - 1e-12


def test_pulses_have_no_margin_unless_a_run_is_of_an_earlier_version() -> None:
    arrays = {**review(seed=5), "margins": RULES.margins, "holds": RULES.holds}
    jump = next(head for head in THRESHOLDS.heads(arrays) if head.name == "jump")
    assert jump.raw is None
    raw = arrays["scores"][arrays["masks"][:, 6], 6]
    decided = asked(arrays["groups"], streams(arrays["groups"], arrays["times"]))[arrays["masks"][:, 6]]
    assert np.array_equal(jump.scores[decided], raw[decided])
    assert (jump.scores[~decided] == -np.inf).all()
    earlier = {name: array for name, array in arrays.items() if name not in ("margins", "holds")}
    for head in THRESHOLDS.heads(earlier):
        assert head.sent is None
        if head.name in NAMES:
            column = NAMES.index(head.name)
            assert np.array_equal(head.scores, arrays["scores"][arrays["masks"][:, column], column])


def test_totals_as_sent_are_those_of_what_is_sent() -> None:
    arrays = {**review(seed=6), "margins": RULES.margins, "holds": RULES.holds}
    thresholds = {name: 0.3 + 0.03 * k for k, name in enumerate((*NAMES, "hotbar_min_confidence"))}
    heads = {head.name: head for head in THRESHOLDS.heads(arrays)}
    found = THRESHOLDS.sent_totals(arrays, heads, thresholds)
    sent = np.array([
        as_documented(arrays, k, thresholds[name], float(RULES.margins[k]), bool(RULES.holds[k]))
        for k, name in enumerate(NAMES)
    ]).T  # fmt: skip
    idle = arrays["idle"]
    assert found["idle accuracy as sent"] == pytest.approx(1 - sent[idle, :12].any(axis=1).mean())
    f1 = []
    for k in range(12, 15):
        target = arrays["targets"][:, k] & arrays["masks"][:, k]
        f1.append(2 * (sent[:, k] & target).sum() / (sent[:, k].sum() + target.sum()))
    assert found["inventory F1 as sent"] == pytest.approx(np.mean(f1))


@pytest.mark.parametrize("frames", [0, 1, 2, 3, 10, 257])
def test_stretches_side_by_side_are_one_after_the_other(frames: int) -> None:
    random = np.random.default_rng(frames)
    low = random.random(frames)
    high = low + random.random(frames)
    low[random.random(frames) < 0.2] = -np.inf
    at, expected = -math.inf, []
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        at = max(a, min(at, b))
        expected.append(at)
    assert clamped(low, high).tolist() == expected


def test_a_score_that_is_not_a_number_costs_only_its_frame() -> None:
    scores = np.random.default_rng(0).random(50)
    begins = np.arange(50) == 0
    damaged = scores.copy()
    damaged[20] = np.nan
    found = through_margin(damaged, begins, 0.05)
    assert np.isnan(found[20])
    assert np.array_equal(np.delete(found, 20), through_margin(np.delete(scores, 20), begins[:49], 0.05))


def test_presses_last_from_frame_to_frame() -> None:
    arrays = review_arrays(40, 2)
    arrays["times"] = np.arange(40) / 20
    arrays["masks"][:] = True
    arrays["targets"][:] = False
    arrays["targets"][[3, 4, 5, 18, 19, 20, 30], 7] = True  # 20 begins another session
    found = presses(arrays)
    assert found[7].tolist() == pytest.approx([0.15, 0.1, 0.05, 0.05])
    assert [len(one) for k, one in enumerate(found) if k != 7] == [0] * (len(BINARY) - 1)
