"""The report of a finished run: every table from the same windows, and no loss where data has gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.training.comparison import STRONGEST, WORSE
from engines.training.project import Context, Table
from projects.controls.baselines import target_rows
from projects.controls.batches import WindowSource
from projects.controls.config import ControlsConfig
from projects.controls.evaluation import ControlsResult
from projects.controls.layout import BINARY, CONTROL_NAMES
from projects.controls.metrics import Prediction, score_controls
from projects.controls.predictions import Gathered
from projects.controls.project import ControlsProject
from projects.controls.recordings import read_recording, write_recording
from projects.controls.report import baseline_table
from projects.controls.spec import SPEC
from projects.controls.split import read_split
from projects.controls.tuning import tuned
from tests.projects.controls.sessions import random_session

FRAMES = 330
"""Enough for most controls to count in the means."""
CONTEXT = Context(0, 0, 0.0, "", frozenset(head.name for head in SPEC.heads))


class Run:
    """Five sessions, two of them held out, and an untrained model evaluated on these."""

    def __init__(self, folder: Path, test_fraction: float = 0.0) -> None:
        self.folder = folder
        for k in range(5):
            write_recording(folder / f"s{k}.npz", random_session(f"s{k}", FRAMES + k, k))
        model = {"d_model": 16, "nhead": 2, "num_layers": 1, "dim_feedforward": 16}
        self.cfg = ControlsConfig.model_validate(
            {
                "project": "controls",
                "data": {"path": str(folder), "val_fraction": 0.4, "test_fraction": test_fraction},
                "model": model,
            }
        )
        self.project = ControlsProject()
        self.split = self.project.data(self.cfg, torch.device("cpu"))
        torch.manual_seed(0)
        self.model = self.project.model(self.cfg, self.split).eval()
        evaluation = self.project.evaluation(self.cfg, self.split)
        batch = self.split.validation.batch(torch.arange(len(self.split.validation)), None)
        with torch.inference_mode():
            evaluation.add(self.model, batch, CONTEXT)
        self.result: ControlsResult = evaluation.result()

    def report(self) -> Mapping[str, Table]:
        return self.project.report(self.cfg, self.split, self.model, self.result)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Mapping[str, Table]]:
    run = Run(tmp_path_factory.mktemp("run") / "recordings")
    return run, run.report()


def rows(table: Table) -> dict[Any, dict[str, Any]]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_the_run_stands_beside_its_baselines(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    assert list(tables) == [
        "baselines", "change frames", "self-fed history", "leaking state", "state columns", "sessions",
        "tuned thresholds", "as sent", "calibration", "reliability",
    ]  # fmt: skip
    baselines = rows(tables["baselines"])
    beaten = ["all-zero", "repeat-last", "logistic", "window-linear"]
    assert list(baselines) == ["this run", *beaten, *(f"skill over {name}" for name in beaten), STRONGEST, WORSE]
    assert baselines["this run"]["score"] == run.result.score
    assert baselines["this run"]["action_change_f1"] == run.result.values["action_change_f1"]
    assert baselines["repeat-last"]["action_change_f1"] == 0
    assert {row["repeat-last"] for row in rows(tables["change frames"]).values()} == {0}
    assert list(rows(tables["change frames"])) == [CONTROL_NAMES[column] for column in BINARY]


def test_what_counts_and_the_goal_are_said(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    few = [row for row in run.result.tables["controls"].rows if int(row[2]) < 20]  # type: ignore[arg-type]
    flagged = [row[0] for row in run.result.tables["controls"].rows if row[4] == "no"]
    assert flagged == [row[0] for row in few]
    actions = sum(name not in ("inv_left_click", "inv_right_click", "inv_shift_held") for name in flagged)
    said = f"F1 is the mean over {12 - actions} of 12 action controls and {3 - len(flagged) + actions} of 3 inventory"
    for note in (tables["baselines"].note, run.result.tables["heads"].note, run.result.tables["controls"].note):
        assert said in note
    goal = rows(run.result.tables["heads"])["idle accuracy above 0.95 (the goal)"]["value"]
    assert goal == ("yes" if (run.result.values["idle_accuracy"] or 0) > 0.95 else "no")


def test_the_model_and_its_baselines_are_judged_on_the_same_frames(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, _ = made
    rows_again, truth = target_rows(read_split(run.cfg.data)[1]).truth, run.result.truth
    assert np.array_equal(truth.targets, rows_again.targets)
    assert np.array_equal(truth.previous, rows_again.previous)
    assert np.array_equal(truth.masks.action, rows_again.masks.action)
    assert np.array_equal(truth.masks.idle, rows_again.masks.idle)


def test_sessions_are_scored_alone_and_pooled(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    table = rows(tables["sessions"])
    names = run.split.summary["validation_sessions"]
    assert list(table) == [*names, "pooled", "mean over sessions", "standard deviation"]
    first = FRAMES + int(names[0][1]) - 29
    prediction, truth = run.result.prediction, run.result.truth
    alone = score_controls(prediction[np.arange(first)], truth[np.arange(first)])
    assert table[names[0]]["windows"] == first
    assert table[names[0]]["score"] == alone.score
    assert table[names[0]]["inv_f1"] == alone.values["inv_f1"]
    assert table["pooled"]["score"] == run.result.score
    both = [table[name]["cursor_mse"] for name in names]
    assert table["mean over sessions"]["cursor_mse"] == pytest.approx(sum(both) / 2)
    assert table["standard deviation"]["cursor_mse"] == pytest.approx(abs(both[0] - both[1]) / 2**0.5)


def test_tuned_thresholds_stand_beside_the_configured_ones(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    table = rows(tables["tuned thresholds"])
    ways = ("as trained", "tuned on these sessions", "tuned on the others")
    assert list(table) == [name for way in ways for name in (way, f"{way}, as sent")]
    assert table["as trained"]["score"] == run.result.score
    chosen = tuned(run.cfg, run.result.review)
    in_sample = score_controls(run.result.prediction, run.result.truth, chosen).values
    assert table["tuned on these sessions"]["idle_accuracy"] == in_sample["idle_accuracy"]
    assert table["tuned on these sessions"]["inv_f1"] >= table["as trained"]["inv_f1"]
    assert table["tuned on the others"]["look_mse"] == table["as trained"]["look_mse"]


def test_the_gap_is_teacher_forced_less_self_fed(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    table = rows(tables["self-fed history"])
    score = table["combined score"]
    assert score["teacher-forced, as trained"] == run.result.score, "all windows are within the limit here"
    for row in table.values():
        for thresholds in ("as trained", "tuned", "window-linear"):
            forced, fed, gap = (row[f"{which}, {thresholds}"] for which in ("teacher-forced", "self-fed", "gap"))
            assert gap == pytest.approx(forced - fed)
    linear = rows(tables["baselines"])["window-linear"]
    assert score["teacher-forced, window-linear"] == linear["score"], "it is the baseline"
    assert table["cursor error in pixels"]["self-fed, window-linear"] != pytest.approx(
        linear["cursor_pixels"], rel=1e-3
    )
    assert f"{len(run.result.truth)} windows" in tables["self-fed history"].note


def test_the_lagged_row_is_the_run_as_it_is(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    table = tables["leaking state"]
    assert [row[:2] for row in table.rows] == [
        (who, shown) for who in ("this run", "logistic, refitted") for shown in ("lagged", "as recorded", "dropped")
    ]
    assert table.rows[0][2] == run.result.score


def test_calibration_weighs_as_the_training_did(made: tuple[Run, Mapping[str, Table]]) -> None:
    run, tables = made
    table = rows(tables["calibration"])
    weights = run.result.review["pos_weights"]
    assert [row["weight"] for row in list(table.values())[:15]] == pytest.approx(weights.tolist())
    attack, kept = table["attack"], run.result.truth.masks.gameplay
    q, w = run.result.prediction.action[kept, 7].astype(float), float(weights[7])
    assert attack["raw mean"] == pytest.approx(q.mean())
    assert attack["corrected mean"] == pytest.approx((q / (q + w * (1 - q))).mean())
    assert attack["pressed"] == pytest.approx((run.result.truth.targets[kept, 7] > 0.5).mean())
    judged = 12 * kept.sum() + 3 * (~kept).sum() + (~kept).sum()  # open_inventory is judged on all frames
    assert sum(row["raw frames"] for row in rows(tables["reliability"]).values()) == judged
    assert sum(row["corrected frames"] for row in rows(tables["reliability"]).values()) == judged


def test_data_that_has_changed_or_gone_costs_only_what_needs_it(tmp_path: Path) -> None:
    run = Run(tmp_path / "recordings")
    held_out = run.folder / f"{run.split.summary['validation_sessions'][0]}.npz"
    recording = read_recording(held_out)
    recording.controls[40, 7] = 1 - recording.controls[40, 7]
    write_recording(held_out, recording)
    changed = run.report()
    assert "no longer holds the sessions that this run was validated on" in changed["baselines"].note
    for file in run.folder.iterdir():
        file.unlink()
    gone = run.report()
    assert gone["baselines"].rows == ()
    assert "no recordings" in gone["baselines"].note
    assert list(gone) == ["baselines", "sessions", "tuned thresholds", "as sent", "calibration", "reliability"]
    assert rows(gone["sessions"])["pooled"]["score"] == run.result.score


def test_probabilities_that_are_no_numbers_cost_only_their_own_control(tmp_path: Path) -> None:
    run = Run(tmp_path / "recordings")
    action = run.result.prediction.action.copy()
    action[:, 7] = np.nan
    run.result = replace(run.result, prediction=replace(run.result.prediction, action=action))
    tables = run.report()
    calibrated = rows(tables["calibration"])
    assert (calibrated["attack"]["frames"], calibrated["attack"]["raw ECE"]) == (0, None)
    assert calibrated["jump"]["raw ECE"] is not None
    assert rows(tables["tuned thresholds"])["tuned on these sessions"]["action_f1"] > 0


def test_the_test_is_the_headline_at_thresholds_of_validation(tmp_path: Path) -> None:
    run = Run(tmp_path / "recordings", test_fraction=0.2)
    (held,) = run.split.summary["test_sessions"]
    assert held not in run.split.summary["validation_sessions"]
    assert run.split.summary["train_sessions"] == 2
    tables = run.report()
    heads = rows(tables["heads"])
    source = WindowSource([read_recording(run.folder / f"{held}.npz")], torch.device("cpu"), 0.0)
    batch = source.batch(torch.arange(len(source)), None)
    gathered = Gathered()
    with torch.inference_mode():
        gathered.add(run.model(batch["features"], batch["mask"]), batch)
    prediction, truth = gathered.arrays()
    chosen = tuned(run.cfg, run.result.review)
    test, validation = score_controls(prediction, truth, chosen), run.result
    tuned_there = score_controls(validation.prediction, validation.truth, chosen)
    expected = {"test": test.score, "validation": tuned_there.score, "validation, as trained": validation.score}
    assert heads["combined score"] == pytest.approx({"metric": "combined score", **expected})
    assert heads["idle accuracy"]["test"] == pytest.approx(test.values["idle_accuracy"])
    assert heads["look squared error"]["validation"] == validation.values["look_mse"]
    assert f"{len(source)} windows of 1 sessions that nothing was chosen on: {held}." in tables["heads"].note
    controls = rows(tables["test controls"])
    assert [row["F1"] for row in controls.values()] == pytest.approx([c.f1 for c in test.controls])
    baselines = rows(tables["test baselines"])
    assert baselines["this run"]["score"] == pytest.approx(test.score)
    zero = Prediction.of_controls(np.zeros_like(truth.targets))
    assert baselines["all-zero"]["idle_accuracy"] == score_controls(zero, truth).values["idle_accuracy"] == 1
    assert baselines["all-zero"]["look_mse"] == pytest.approx(score_controls(zero, truth).values["look_mse"])
    assert rows(tables["baselines"])["this run"]["score"] == validation.score
    assert list(tables)[:4] == ["heads", "test controls", "test baselines", "baselines"]


def test_the_ceiling_of_look_says_what_it_bounds(made: tuple[Run, Mapping[str, Table]]) -> None:
    """Where there is one."""
    run, tables = made
    assert "ceiling" not in tables["baselines"].note
    scores = score_controls(run.result.prediction, run.result.truth)
    note = baseline_table(scores, {"all-zero": scores, "ceiling": scores}, "On 3 windows.").note
    assert note.startswith(
        "On 3 windows. The ceiling's look is the best for any frame, not given that the frame is judged"
    )
