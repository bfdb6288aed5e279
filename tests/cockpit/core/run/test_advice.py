"""What ten more epochs bring: the interval holds as often as it says, on real curves and on made ones."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cockpit.core.run.advice import AHEAD, LEAST_SCORES, Gain, Shape, advise, expected_gain
from engines.runs.history import History
from tests.support.fake_run import epoch

LOGS = Path(__file__).parents[5] / "shared" / "data" / "runlogs"


def held(scores: Sequence[float]) -> list[bool]:
    """Of each prediction that could have been made along `scores`, whether the true gain lay in its interval."""
    found = []
    for done in range(LEAST_SCORES, len(scores) - AHEAD + 1):
        gain = expected_gain(scores[:done])
        assert gain is not None
        assert gain.low <= gain.middle <= gain.high
        true = max(max(scores[done : done + AHEAD]) - max(scores[:done]), 0.0)
        found.append(gain.low - 1e-9 <= true <= gain.high + 1e-9)
    return found


def test_fewer_than_eight_scores_say_nothing_and_a_constant_gains_nothing() -> None:
    assert expected_gain([0.1] * 7) is None
    constant = expected_gain([0.7] * 20)
    assert constant is not None
    assert constant.high < 1e-12
    assert str(constant) == "none"
    assert str(Gain(0, 0, 0)) == "none"
    assert str(Gain(0.00213, 0.005, 0.0113)) == "+0.002 to +0.011"
    assert str(Gain(0, 12.4, 131.2)) == "+0 to +131"


def test_scores_however_large_are_advised_on() -> None:
    small = [0.1, 0.4, 0.2, 0.5, 0.3, 0.6, 0.5, 0.7]
    gain, large = expected_gain(small), expected_gain([2.0**1000 * score for score in small])
    assert gain is not None
    assert large is not None
    assert (large.low, large.high) == (2.0**1000 * gain.low, 2.0**1000 * gain.high)
    assert len(str(large)) < 30
    assert expected_gain([0.1] * 6 + [1.7e308, -1.7e308] * 4) is None, "more than a number holds"


def test_without_noise_the_interval_spans_what_the_shapes_say() -> None:
    """ln t fits exactly, so its gain is the upper end; 1/t through the same epochs, fitted here by numpy, is below."""
    epochs = np.arange(1.0, 21.0)
    gain = expected_gain(list(np.log(epochs)))
    assert gain is not None
    assert gain.high == pytest.approx(math.log(30 / 20), rel=0.02)
    slope, level = np.polyfit(1 / epochs[-6:], np.log(epochs[-6:]), 1)
    assert gain.low <= level + slope / 30 - math.log(20) < gain.high


def test_the_same_scores_give_the_same_answer_and_their_scale_is_its_scale() -> None:
    scores = list(np.random.default_rng(1).normal(size=30))
    one, thousand = expected_gain(scores), expected_gain([1000 * score + 5 for score in scores])
    assert one == expected_gain(scores)
    assert one is not None
    assert thousand is not None
    assert thousand.high == pytest.approx(1000 * one.high)


@pytest.mark.parametrize(
    ("shape", "least"),
    [
        (lambda t: 1 - np.exp(-t / 15), 0.7),
        (lambda t: 1 - t**-0.5, 0.8),
        (lambda t: 1 - 1 / t, 0.8),
        (np.zeros_like, 0.8),
    ],
)
def test_the_interval_holds_on_made_curves(shape: Shape, least: float) -> None:
    random = np.random.default_rng(0)
    curves = [shape(np.arange(1.0, 41.0)) + 0.02 * random.standard_normal(40) for _ in range(3)]
    share = np.mean([one for curve in curves for one in held(list(curve))])
    assert least <= share <= 1


@pytest.mark.skipif(not LOGS.is_dir(), reason="the real logs are not beside this project (../shared/data)")
def test_the_interval_holds_four_times_in_five_on_real_curves() -> None:
    """Thirty seeds of a language model and six data sets of another by loss, a policy's scores, two robots' rewards."""
    records = json.loads((LOGS / "03_mcgesture_training_log" / "training_log.json").read_text())
    curves = [[record["val_combined_score"] for record in records]]
    text = (LOGS / "02_modded_nanogpt_29_restarts" / "a26c8aa2.log").read_text()
    for trial in text.split("\ntrial:")[1:]:
        found = re.findall(r"step:(\d+)/\d+ val_loss:(\S+)", trial)
        curves.append([-float(loss) for step, loss in found if int(step) % 125 == 0])
    with open(LOGS / "14_tdmpc_csv" / "dog-walk.csv", newline="") as file:
        rewards = [(row["seed"], float(row["reward"])) for row in csv.DictReader(file)]
    curves += [[reward for seed, reward in rewards if seed == one][-41:] for one in ("1", "2")]
    state = json.loads((LOGS / "04_hf_trainer_state" / "trainer_state.json").read_text())["log_history"]
    for name in (f"eval_g{place}_loss" for place in range(6)):
        curves.append([-row[name] for row in state if name in row])
    predictions = [one for curve in curves for one in held(curve)]
    assert len(predictions) == 28 + 30 * 8 + 2 * 24 + 6 * 14
    assert np.mean(predictions) >= 0.8


def test_the_newest_stage_is_advised_on_with_what_its_recent_epochs_cost() -> None:
    history = History()
    for number in range(1, 31):
        row = epoch(number, score=1.0 if number <= 10 else 0.01 * number)
        row.stage = "head" if number <= 10 else "whole"
        row.seconds = 3.0 if number == 30 else 2.0
        history.add(row)
    advice = advise(history, 3.6)
    gain = expected_gain([0.01 * number for number in range(11, 31)])
    assert gain is not None
    assert advice is not None
    assert advice.usd is not None
    assert (advice.gain, advice.best, advice.best_epoch) == (gain, 0.3, 30)
    assert (round(advice.seconds, 6), round(advice.usd, 6)) == (22.0, 0.022)
    assert str(advice) == f"10 more epochs: best {gain} (80 %), 22 s, $0.02"
    assert str(advise(history, 0.0)) == f"10 more epochs: best {gain} (80 %), 22 s"
    assert advise(History(), 3.6) is None
