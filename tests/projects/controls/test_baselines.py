"""Baselines and ceiling are scored on the frames a model's windows target, and each is what its name says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engines.basics.errors import DataError
from projects.controls.baselines import Baselines, target_rows
from projects.controls.batches import WindowSource
from projects.controls.demo.names import ATTACK, DROP, FORWARD, LEFT_CLICK, SHIFT
from projects.controls.demo.session import make_session
from projects.controls.layout import CURSOR, HOTBAR, LOOK, SCREEN_OPEN
from projects.controls.logistic import best_f1_thresholds
from projects.controls.masks import frame_masks
from projects.controls.metrics import Prediction, Scores, Scoring, Truth
from projects.controls.recordings import Recording
from tests.projects.controls.sessions import random_session


def f1(scores: Scores, name: str) -> float | None:
    return next(control.f1 for control in scores.controls if control.name == name)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Scores], list[Recording]]:
    """Six short demo sessions, two of them held out, and all scores on those two; rare controls count too."""
    folder = tmp_path_factory.mktemp("ceiling")
    sessions = [make_session(seed=1, number=number, minutes=1.5) for number in range(6)]
    for session in sessions:
        np.savez(folder / f"{session.recording.name}.npz", expected=session.ceiling)
    recordings = [session.recording for session in sessions]
    scores = Baselines(recordings[:4]).scores(recordings[4:], folder)
    return {name: one.by(Scoring(1)) for name, one in scores.items()}, recordings[4:]


def test_the_demo_leaves_a_model_room_between_baselines_and_ceiling(
    demo: tuple[dict[str, Scores], list[Recording]],
) -> None:
    scores, _ = demo
    assert list(scores) == ["all-zero", "repeat-last", "logistic", "window-linear", "ceiling"]
    best = max(scores[name].score or 0 for name in ("all-zero", "repeat-last", "logistic"))
    ceiling = scores["ceiling"].score
    assert ceiling is not None
    assert ceiling - best > 0.2
    assert ceiling > 0.93
    # a single frame tells held controls, but not when a gesture will fire
    assert (f1(scores["logistic"], "move_forward") or 0) > 0.9
    for name in ("jump", "attack", "drop_item", "swap_offhand", "open_inventory"):
        assert (f1(scores["logistic"], name) or 0) < 0.4
        assert (f1(scores["ceiling"], name) or 0) > 0.75


def test_zero_and_repeated_controls_score_what_can_be_counted(
    demo: tuple[dict[str, Scores], list[Recording]],
) -> None:
    scores, recordings = demo
    frames = [(r.controls[k], r.controls[k - 1], r.state[k]) for r in recordings for k in range(29, len(r))]
    now, before, state = (np.array(column) for column in zip(*frames, strict=True))
    game = state[:, SCREEN_OPEN] == 0
    looking = game & (np.sqrt(now[:, LOOK[0]] ** 2 + now[:, LOOK[1]] ** 2) > 0.08)
    assert scores["all-zero"].values["look_mse"] == pytest.approx((now[looking][:, LOOK] ** 2).mean(), rel=1e-5)
    assert scores["all-zero"].values["cursor_mse"] == pytest.approx((now[~game][:, CURSOR] ** 2).mean(), rel=1e-5)
    assert scores["all-zero"].values["idle_accuracy"] == 1
    assert scores["all-zero"].values["action_f1"] == 0
    error = (now[looking][:, LOOK] - before[looking][:, LOOK]) ** 2
    assert scores["repeat-last"].values["look_mse"] == pytest.approx(error.mean(), rel=1e-5)
    both = (now[game, FORWARD] * before[game, FORWARD]).sum()
    expected = 2 * both / (now[game, FORWARD].sum() + before[game, FORWARD].sum())
    assert f1(scores["repeat-last"], "move_forward") == pytest.approx(expected)
    assert f1(scores["repeat-last"], "attack") == 0
    for name in ("all-zero", "repeat-last"):
        assert scores[name].values["action_change_f1"] == scores[name].values["inv_change_f1"] == 0
    assert (scores["ceiling"].values["action_change_f1"] or 0) > 0.8


def test_the_frames_are_those_of_the_models_windows(demo: tuple[dict[str, Scores], list[Recording]]) -> None:
    scores, recordings = demo
    targets, masks = WindowSource(recordings, torch.device("cpu"), 0.0).labels()
    attack = next(control for control in scores["all-zero"].controls if control.name == "attack")
    assert attack.frames == int(masks["gameplay"].sum())
    assert attack.support == int(((targets[:, ATTACK] > 0.5) & masks["gameplay"]).sum())


def test_the_logistic_baseline_finds_what_one_frame_shows() -> None:
    """Controls that are plain functions of the newest frame are learned; others are not."""

    def session(name: str, seed: int) -> Recording:
        recording = random_session(name, 600, seed)
        controls, frames = recording.controls.copy(), recording.frames.copy()
        frames[:, 20:190] = frames[:, 210:] = 0  # so many random columns would be learned by heart
        controls[:, FORWARD] = frames[:, 3] > 0.5
        controls[:, SHIFT] = frames[:, 200] + frames[:, 12] > 1
        controls[:, LOOK] = 0.2 * frames[:, :2].clip(-2, 2)
        controls[:, HOTBAR] *= 0
        controls[np.arange(600), 14 + np.clip(np.round(frames[:, 7] * 2 + 4), 0, 8).astype(int)] = 1
        return replace(recording, controls=controls, frames=frames)

    scores = Baselines([session(f"train{k}", k) for k in range(6)]).scores([session("held-out", 9)])["logistic"]
    assert (f1(scores, "move_forward") or 0) > 0.8
    assert (f1(scores, "inv_shift_held") or 0) > 0.7
    assert (f1(scores, "drop_item") or 0) < 0.5
    assert (scores.values["look_mse"] or 0) < 0.02
    assert (scores.values["hotbar_accuracy"] or 0) > 0.25  # one in nine by chance


def test_many_frames_are_thinned_evenly_within_each_session() -> None:
    recordings = [random_session("a", 60, 1), random_session("b", 45, 2)]
    rows = target_rows(recordings, 20)  # 31 + 16 windows: every third
    frames = [(recording, frame) for recording in recordings for frame in range(29, len(recording), 3)]
    assert np.array_equal(rows.truth.targets, [recording.controls[frame] for recording, frame in frames])
    assert np.array_equal(rows.truth.previous, [recording.controls[frame - 1] for recording, frame in frames])
    assert np.array_equal(rows.features[:, :260], [recording.frames[frame] for recording, frame in frames])
    assert len(target_rows(recordings, 47).features) == len(target_rows(recordings).features) == 47


def test_it_is_fitted_the_same_every_time() -> None:
    train, held_out = [random_session("a", 200, 1), random_session("b", 200, 2)], [random_session("c", 100, 3)]
    assert Baselines(train).scores(held_out) == Baselines(train).scores(held_out)


def test_without_its_files_there_is_no_ceiling(tmp_path: Path) -> None:
    train, held_out = [random_session("a", 100, 1)], [random_session("b", 100, 2), random_session("c", 100, 3)]
    np.savez(tmp_path / "b.npz", expected=held_out[0].controls)
    fitted = Baselines(train)
    assert "ceiling" not in fitted.scores(held_out, tmp_path)
    assert "ceiling" not in fitted.scores(held_out, None)
    np.savez(tmp_path / "c.npz", expected=held_out[1].controls)
    assert fitted.scores(held_out, tmp_path)["ceiling"].score == pytest.approx(1)


@pytest.mark.parametrize("content", [b"", b"not a zip", None])
def test_a_ceiling_that_does_not_fit_is_said(tmp_path: Path, content: bytes | None) -> None:
    session = random_session("a", 100, 1)
    if content is None:
        np.savez(tmp_path / "a.npz", expected=session.controls[:-1])
    else:
        (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz: .*make the demo data again"):
        Baselines([session]).scores([session], tmp_path)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), st.booleans()), min_size=5, max_size=40))
def test_no_threshold_has_a_better_f1(pairs: list[tuple[float, bool]]) -> None:
    rows, targets = np.zeros((2, len(pairs), 28), np.float32)
    rows[:, DROP], targets[:, DROP] = zip(*pairs, strict=True)
    rows[:, LEFT_CLICK], targets[:, LEFT_CLICK] = zip(*pairs, strict=True)
    state = np.zeros((len(pairs), 46), np.float32)
    prediction = Prediction.of_controls(rows)
    game = best_f1_thresholds(prediction, Truth(targets, targets, frame_masks(targets, state))).action[9]
    state[:, SCREEN_OPEN] = 0.33
    screen = best_f1_thresholds(prediction, Truth(targets, targets, frame_masks(targets, state))).inv[0]
    assert game == screen

    def score(threshold: float) -> float:
        yes = [np.float32(value) >= np.float32(threshold) for value, _ in pairs]
        hits = sum(said and wanted for said, (_, wanted) in zip(yes, pairs, strict=True))
        return 2 * hits / max(sum(yes) + sum(wanted for _, wanted in pairs), 1)

    assert score(game) == max(score(value) for value in (0.0, 0.1, 0.25, 0.5, 0.8, 1.0))
