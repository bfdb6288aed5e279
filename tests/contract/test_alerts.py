"""Alerts: told of what is wrong, silent on real curves that make progress, rates of false alarms as docs/alerts.md has.

The made curves are counted over fixed seeds, so a rule that becomes more nervous or deafer fails here.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from engines.contract import alerts
from engines.contract import events as ev
from engines.contract.alerts import Finding, budget_near, disk_low, exploit, overfit, plateau, trend
from engines.contract.events import Epoch
from engines.contract.step_alerts import exploding, starving, usual_norm
from engines.runs.history import History

Floats = Sequence[float] | npt.NDArray[np.float64]

LOGS = Path(__file__).parents[3] / "shared" / "data" / "runlogs"
real = pytest.mark.skipif(not LOGS.is_dir(), reason="the real logs are not beside this project (../shared/data)")


def rows(scores: Sequence[float | None], train: Floats = (), validation: Floats = ()) -> list[Epoch]:
    """Epochs with these scores and losses, each marked best as the loop would."""
    made: list[Epoch] = []
    best = -math.inf
    for place, score in enumerate(scores):
        better = score is not None and score > best
        best = score if better and score is not None else best
        made.append(
            Epoch(
                epoch=place + 1, step=10 * (place + 1), stage="train", score=score, lr=1e-3, best=better, weights={},
                seconds=1.0, train={"loss": train[place]} if len(train) else {},
                validation={"loss": validation[place]} if len(validation) else {},
            )
        )  # fmt: skip
    return made


def first_plateau(scores: Floats) -> int | None:
    """Epochs done when it is first told."""
    made = rows([float(score) for score in scores])
    return next((n for n in range(1, len(made) + 1) if plateau(made[:n], n)), None)


def first_overfit(train: Floats, validation: Floats, scores: Sequence[float | None]) -> int | None:
    made = rows(scores, [float(loss) for loss in train], [float(loss) for loss in validation])
    return next((n for n in range(1, len(made) + 1) if overfit(made[:n], n)), None)


def test_the_trend_is_the_slope_by_its_standard_error() -> None:
    values = np.random.default_rng(3).normal(size=25) + 0.1 * np.arange(25)
    slope, covariance = np.polyfit(np.arange(25), values, 1, cov=True)
    assert trend(list(values)) == pytest.approx(slope[0] / math.sqrt(covariance[0, 0]), rel=1e-9)
    assert trend([1.0, 2.0, 3.0]) == math.inf
    assert trend([2.0, 2.0, 2.0]) == 0
    assert trend([1.0, 9.0]) == 0


# -- plateau ---------------------------------------------------------------------------------------------------------


def test_a_plateau_is_told_after_twelve_epochs_and_a_quarter_without_a_better_score() -> None:
    scores = [1 - 0.5**epoch for epoch in range(20)] + [0.9] * 40
    assert first_plateau(scores) == 32
    (finding,) = [plateau(rows(scores[:32]), 32)]
    assert finding == Finding("plateau", "no better score than 1 since epoch 20")
    assert first_plateau([*(0.5 + epoch / 1e6 for epoch in range(59)), 0.9, *[0.5] * 40]) == 80  # a quarter of 80 is 20


def test_a_plateau_counts_from_what_a_person_changed_and_holds_until_a_better_score() -> None:
    flat = [0.5, *([0.4] * 30)]
    assert plateau(rows(flat), 11) is None
    assert plateau(rows(flat), 12)
    rising = [*flat, *(0.4 + 0.004 * epoch for epoch in range(20))]
    assert plateau(rows(rising), 40) is None
    assert plateau(rows(rising), 40, told=True)
    assert plateau(rows([*rising, 0.6]), 40, told=True) is None


@pytest.mark.parametrize("scores", [[], [None] * 40, [None, 0.5, None]])
def test_without_scores_there_is_no_plateau(scores: list[float | None]) -> None:
    assert plateau(rows(scores), len(scores)) is None


@pytest.mark.behaviour("goes-wrong-training-s")
@pytest.mark.parametrize(("slope", "least", "most"), [(0.5, 0, 0), (0.2, 0, 0.04), (0.1, 0.05, 0.25), (0.0, 1, 1)])
def test_how_often_steady_progress_is_called_a_plateau(slope: float, least: float, most: float) -> None:
    """Lines of 100 epochs that rise by `slope` of their noise an epoch; at 0 there is a plateau to be found."""
    random = np.random.default_rng(0)
    curves = [slope * np.arange(100) + random.standard_normal(100) for _ in range(60)]
    told = np.mean([first_plateau(curve) is not None for curve in curves])
    assert least <= told <= most


def test_a_curve_that_still_saturates_is_no_plateau() -> None:
    random = np.random.default_rng(0)
    for tau, noise in ((20, 0.02), (20, 0.005), (40, 0.01)):
        for _ in range(10):
            curve = 1 - np.exp(-np.arange(1, 101) / tau) + noise * random.standard_normal(100)
            assert first_plateau(curve) is None


@pytest.mark.behaviour("goes-wrong-training-s")
@real
def test_real_runs_in_steady_progress_have_no_plateau() -> None:
    """Thirty seeds and a long run of a language model by validation loss, and two of three runs of a robot."""
    text = (LOGS / "02_modded_nanogpt_29_restarts" / "a26c8aa2.log").read_text()
    for trial in text.split("\ntrial:")[1:]:
        assert first_plateau([-float(loss) for loss in re.findall(r"val_loss:(\S+)", trial)]) is None
    text = (LOGS / "01_llmc_gpt2_main_log" / "main.log").read_text()
    assert first_plateau([-float(loss) for loss in re.findall(r"^s:\d+ tel:([\d.]+)\n", text, re.MULTILINE)]) is None
    with open(LOGS / "14_tdmpc_csv" / "dog-walk.csv", newline="") as file:
        rewards = [(row["seed"], float(row["reward"])) for row in csv.DictReader(file)]
    assert first_plateau([reward for seed, reward in rewards if seed == "1"][-41:]) is None
    assert first_plateau([reward for seed, reward in rewards if seed == "2"][-41:]) is None


@real
def test_a_real_run_that_came_to_its_end_is_told_thirteen_epochs_before_its_patience_ran_out() -> None:
    records = json.loads((LOGS / "03_mcgesture_training_log" / "training_log.json").read_text())
    scores = [record["val_combined_score"] for record in records]
    assert (len(scores), int(np.argmax(scores)) + 1, first_plateau(scores)) == (45, 20, 32)


# -- overfit ---------------------------------------------------------------------------------------------------------


@real
def test_real_overfit_is_told_and_its_absence_is_not() -> None:
    records = json.loads((LOGS / "03_mcgesture_training_log" / "training_log.json").read_text())
    train, validation = ([record[group]["loss"] for record in records] for group in ("train", "val"))
    told = first_overfit(train, validation, [record["val_combined_score"] for record in records])
    assert told is not None
    assert 20 < told <= 30
    state = json.loads((LOGS / "04_hf_trainer_state" / "trainer_state.json").read_text())["log_history"]
    losses = [row["loss"] for row in state if "loss" in row]
    seen = [row["eval_g0_loss"] for row in state if "eval_g0_loss" in row][-len(losses) :]
    assert first_overfit(losses, seen, [None] * len(losses)) in (9, 10)
    assert first_overfit(losses, [-loss for loss in seen], [None] * len(losses)) is None


def test_how_often_noise_is_called_overfit() -> None:
    """Of 60 runs of 100 epochs each whose training loss falls; the validation loss is flat, falls, or rises."""
    random = np.random.default_rng(0)
    at = np.arange(1.0, 101.0)

    def share(course: npt.NDArray[np.floating]) -> float:
        found = 0
        for _ in range(60):
            train = 1 / np.sqrt(at) + 0.01 * random.standard_normal(100)
            seen = course + 0.02 * random.standard_normal(100)
            found += first_overfit(train, seen, [None] * 100) is not None
        return found / 60

    assert share(np.ones(100)) <= 0.05
    assert share(1.2 - 0.002 * at) == 0
    assert share(0.8 + np.exp(-at / 5) + 0.01 * np.maximum(at - 20, 0)) == 1


def test_a_score_that_still_improves_is_no_overfit() -> None:
    train, seen = [1 / epoch for epoch in range(1, 31)], [0.4 + 0.01 * epoch for epoch in range(30)]
    assert first_overfit(train, seen, [epoch / 30 for epoch in range(30)]) is None
    assert first_overfit(train, seen, [None] * 30) == 9
    finding = overfit(rows([None] * 20, train[:20], seen[:20]), 20)
    assert finding is not None
    assert finding.text.endswith("from 0.4 in epoch 1 to 0.58")
    assert overfit(rows([None] * 20, train[:20], seen[:20]), 7) is None  # something was changed seven epochs ago


def test_an_overfit_takes_a_loss_that_falls_and_one_that_rises_by_a_twentieth() -> None:
    falls, rises = [1 / epoch for epoch in range(1, 13)], [1 + 0.006 * epoch for epoch in range(12)]
    assert first_overfit(falls, rises, [None] * 12) == 11  # of the newest three the middle one is 5 % above
    assert first_overfit(falls, [1 + 0.004 * epoch for epoch in range(12)], [None] * 12) is None
    assert first_overfit([0.5] * 12, rises, [None] * 12) is None
    assert first_overfit(falls[::-1], rises, [None] * 12) is None


@pytest.mark.parametrize(("best", "told"), [(8, True), (9, False)])
def test_a_best_score_in_the_last_four_epochs_is_no_overfit(best: int, told: bool) -> None:
    scores = [0.2 if epoch == best else 0.1 for epoch in range(1, 13)]
    falls, rises = [1 / epoch for epoch in range(1, 13)], [1 + 0.02 * epoch for epoch in range(12)]
    assert (overfit(rows(scores, falls, rises), 12) is not None) == told


# -- steps -----------------------------------------------------------------------------------------------------------


def norms_until_told(norms: npt.NDArray[np.float64]) -> int | None:
    """Steps done when the gradient is first told, looked at every ten."""
    for count in range(10, len(norms) + 1, 10):
        if exploding(norms[:count], usual_norm(norms[:count])):
            return count
    return None


@real
def test_the_gradient_of_a_real_run_of_7_500_steps_is_never_told() -> None:
    text = (LOGS / "01_llmc_gpt2_main_log" / "main.log").read_text()
    norms = np.array([float(norm) for norm in re.findall(r"norm:([\d.]+)\n", text)])
    assert len(norms) > 7500
    assert norms_until_told(norms) is None


def test_a_gradient_that_explodes_is_told_within_its_twenty_steps_and_a_spike_is_not() -> None:
    norms = np.exp(np.random.default_rng(0).normal(0, 0.5, 600))
    spiked = norms.copy()
    spiked[300:305] *= 1000
    assert norms_until_told(spiked) is None
    exploded = norms.copy()
    exploded[400:] *= 30
    told = norms_until_told(exploded)
    assert told is not None
    assert 410 <= told <= 420
    usual = usual_norm(exploded[:told])
    assert exploding(norms, usual, told=True) is None
    assert exploding(5 * norms, usual, told=True)
    assert exploding(5 * norms, usual) is None
    assert norms_until_told(np.full(600, np.nan)) is None


def test_ten_times_the_usual_norm_is_told_until_it_is_below_three_times() -> None:
    assert usual_norm(np.full(219, 2.0)) is None  # 199 steps before the newest twenty
    assert usual_norm(np.append(np.full(200, 2.0), np.full(20, 50.0))) == 2.0
    for norm, told, now in ((19.9, False, False), (20.0, False, True), (6.0, True, True), (5.9, True, False)):
        assert (exploding(np.full(20, norm), 2.0, told=told) is not None) == now


def test_a_wait_belongs_to_the_step_that_ends_behind_it() -> None:
    """The first one's has no step: what lay before the first moment is not known."""
    times, waits = 1000 + np.arange(200.0), np.full(200, 0.1)
    waits[0] = 1e6
    assert starving(times, waits) is None


def test_waiting_for_data_is_measured_without_the_pauses_between_epochs() -> None:
    times = 1000 + np.cumsum(np.full(200, 0.5))
    times[100:] += 300  # an evaluation
    waits = np.full(200, 0.3)
    waits[100] = 0.3
    finding = starving(times, waits)
    assert finding is not None
    assert finding.text.startswith("60% of the time")
    assert starving(times, waits * 0.75) is None
    assert starving(times, waits * 0.75, told=True)
    assert starving(times, waits * 0.6, told=True) is None
    assert starving(times[:100], waits[:100]) is None  # 50 s are too few to say


# -- disk, money -----------------------------------------------------------------------------------------------------


def test_disk_and_budget() -> None:
    gb = 10**9
    assert disk_low(64 * 10**6, 0) is None
    assert disk_low(63 * 10**6, 0) == Finding("disk", "63.0 MB are free on the run's disk")
    assert disk_low(2 * gb + 64 * 10**6, gb) is None
    assert disk_low(2 * gb, gb) == Finding(
        "disk", "2.0 GB are free on the run's disk, and its next checkpoint takes 1.0 GB"
    )
    assert budget_near(89.9, 100, 3) is None
    assert budget_near(90, 0, 3) is None
    assert budget_near(91, 100, 3) == Finding(
        "budget", "$91.00 of the budget of $100 is spent: the run is saved and stopped in 3 h 00 m"
    )


def test_every_lasting_alert_of_the_watchdog_has_an_end() -> None:
    codes = {
        getattr(alerts, name) for name in ("PLATEAU", "OVERFIT", "GRADIENT", "DATA_WAIT", "STALL", "DISK", "BUDGET")
    }
    assert codes < alerts.LASTING


def test_what_stands_is_of_the_newest_attempt_and_ends_with_what_ends_it() -> None:
    history = History()

    def say(event: ev.Event, attempt: int = 1) -> list[str]:
        event.attempt = attempt
        history.add(event)
        return list(history.standing)

    full = ev.Alert(code="checkpoint-failed", level="error", text="no checkpoint")
    assert say(ev.Alert(code="stage", level="info", text="stage b begins")) == []
    assert say(full) == ["checkpoint-failed"]
    assert say(ev.Alert(code="disk", level="warning", text="little is left")) == ["checkpoint-failed", "disk"]
    assert say(ev.Checkpoint(step=1, epoch=1, files=["last.pt"], size=1, seconds=1.0)) == ["disk"]
    assert say(ev.Alert(code="stall", level="error", text="no sign of life")) == ["disk", "stall"]
    assert say(ev.Alert(code="disk", level="info", text="room again", over=True)) == ["stall"]
    assert say(ev.Phase(phase="loading"), attempt=2) == []
    assert len(history.alerts) == 5


# -- exploit ---------------------------------------------------------------------------------------------------------

PROXIES = {"imagined_return": "played_return"}


def with_returns(imagined: Floats, played: Sequence[float | None] | npt.NDArray[np.float64]) -> list[Epoch]:
    made = rows(list(played))
    return [
        msgspec.structs.replace(row, validation={"imagined_return": float(imagined[place]), "played_return": seen})
        for place, (row, seen) in enumerate(zip(made, played, strict=True))
    ]


def first_exploit(imagined: Floats, played: Sequence[float | None] | npt.NDArray[np.float64]) -> int | None:
    made = with_returns(imagined, played)
    return next((n for n in range(1, len(made) + 1) if exploit(made[:n], PROXIES)), None)


@pytest.mark.behaviour("model-whose-own-word")
def test_how_often_noise_is_called_an_exploit() -> None:
    random = np.random.default_rng(0)
    at = np.arange(20.0)

    def share(course: npt.NDArray[np.float64]) -> float:
        found = 0
        for _ in range(100):
            imagined = 0.3 * at + 0.5 * random.standard_normal(20)
            found += first_exploit(imagined, course + random.standard_normal(20)) is not None
        return found / 100

    assert share(0 * at) <= 0.04
    assert share(0.3 * at) == 0
    assert share(-0.3 * at) >= 0.97


def test_an_exploit_names_both_values_and_lasts_until_a_better_measured_one() -> None:
    imagined, played = [1.0, 2, 3, 4, 5, 6, 7], [5.0, 9, 7.1, 6.8, 6.1, 5.2, 4.9]
    made = with_returns(imagined, played)
    found = exploit(made, PROXIES)
    assert found is not None
    assert found.text == "imagined return rises while played return falls: from 9 in epoch 2 to 4.9"
    assert exploit(made[:-1], PROXIES) is None  # four epochs are too few
    assert exploit(with_returns([-value for value in imagined], played), PROXIES) is None
    assert exploit(made, {}) is None
    steady = with_returns([*imagined, 7.0, 7.0], [*played, 6.0, 6.5])
    assert exploit(steady, PROXIES) is None
    assert exploit(steady, PROXIES, told=True) is not None
    assert exploit(with_returns([*imagined, 8.0], [*played, 9.5]), PROXIES, told=True) is None


def test_epochs_without_a_measured_value_are_left_out() -> None:
    played: list[float | None] = [9.0, None, 7.1, None, 6.8, 6.1, 5.2, 4.9]
    assert first_exploit(list(range(8)), played) == 8
