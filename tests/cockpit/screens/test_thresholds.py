"""The thresholds screen by its keys: what it shows is what the command line tells, what it saves was reviewed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.cli.thresholds import _facts
from cockpit.core.format import number
from cockpit.core.thresholds.review import ThresholdReview
from cockpit.screens import thresholds_reading
from cockpit.screens.run import RunScreen
from cockpit.screens.thresholds import ThresholdsScreen
from cockpit.screens.unapplied import UnappliedScreen
from cockpit.widgets.curve_chart import CurveChart
from cockpit.widgets.thresholds_table import ThresholdsTable
from engines.contract.rundir import RunDirectory
from engines.thresholds.adapter import Titles
from engines.thresholds.review import write_review
from projects.controls.thresholds import ControlThresholds
from tests.cockpit.driving import keys, text, until
from tests.support.fake_review import ABOUT, review_arrays, reviewed_run

Make = Callable[..., CockpitApp]
SIZE = (200, 50)


@pytest.fixture
def run(folder: Path) -> RunDirectory:
    return reviewed_run(folder, review_arrays()).run


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STALE_SECONDS", "QUIET_SECONDS", "RESAMPLE_SECONDS"):
        monkeypatch.setattr(thresholds_reading, name, 0.1)


async def ready(pilot: Pilot[None], run: RunDirectory) -> ThresholdsScreen:
    """Open it and wait until everything is known."""
    screen = ThresholdsScreen(run, lambda: 5.0)
    await pilot.app.push_screen(screen)
    await until(pilot, lambda: "as saved" in text(pilot) and "overall" in text(pilot))
    return screen


def values(screen: ThresholdsScreen) -> dict[str, float]:
    assert screen.tuning is not None
    return screen.tuning.new


def cells(pilot: Pilot[None]) -> dict[str, list[str]]:
    """The table's cells by control, without the signs before the name."""
    lines = (line.strip("│ ").lstrip(">L*! ").split() for line in text(pilot).splitlines()[3:19])
    return {line[0]: line[1:] for line in lines}


def config_of(run: RunDirectory) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.export / "control_config_v2.json").read_text())
    return content


@pytest.mark.behaviour("damaged-run-harms-no-other")
@pytest.mark.parametrize("content", [b"{", b"a: [\n- b", b"\xff\xfe\0", b"[" * 3000])
async def test_t_is_a_sentence_where_the_config_is_none(cockpit: Make, run: RunDirectory, content: bytes) -> None:
    run.config.write_bytes(content)
    async with cockpit(open_run=run).run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "thresholds" in keys(pilot))
        await pilot.press("t")
        await until(pilot, lambda: "config_resolved.yaml" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "thresholds" in keys(pilot))


async def test_t_opens_it_from_the_run_and_escape_goes_back(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit(open_run=run).run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "thresholds" in keys(pilot))
        await pilot.press("t")
        await until(pilot, lambda: "as saved" in text(pilot))
        assert "amber   epoch 2 · step 20 · best.pt · validation sessions of recordings/demo" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


@pytest.mark.behaviour("every-distinct-score-candidate")
async def test_the_numbers_are_those_of_the_command_line(cockpit: Make, run: RunDirectory) -> None:
    """What `cockpit thresholds RUN --optimize --json` prints."""
    review = ThresholdReview(run)
    new = review.optimum
    told = {one["name"]: one for one in _facts(review, review.rows(new), new, saved_to=None)["heads"]}
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot, run)
        await pilot.press("O")
        await until(pilot, lambda: f"{sum(new[name] != review.saved[name] for name in new)} changed" in text(pilot))
        shown = cells(pilot)
    for name, one in told.items():
        rates = [one["after"][key] for key in ("f1", "precision", "recall", "alarm_rate")]
        numbers = [one["new"], one["saved"], *rates]
        expected = ["—" if number is None else f"{number:.3f}" for number in numbers]
        interval = one["interval"]
        ranges = [f"{of['low']:.3f}–{of['high']:.3f}" if of else "—" for of in (interval, one["nearly_best"])]
        gain = "—" if one["gain"] is None else number(one["gain"])
        assert shown[name][:10] == [*expected, str(one["positives"]), *ranges, gain]
        assert one["flag"] == " ".join(shown[name][10:])


async def test_keys_move_optimise_lock_undo_and_restore(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        saved = dict(values(screen))
        assert not keys(pilot)["undo"]
        await pilot.press("right")
        finer = values(screen)["move_forward"]
        assert saved["move_forward"] < finer < saved["move_forward"] + 0.05
        await pilot.press("left", "right_square_bracket")
        assert values(screen)["move_forward"] == pytest.approx(0.55)
        await pilot.press("shift+left", "left_square_bracket")
        assert values(screen)["move_forward"] == pytest.approx(0.45)
        await pilot.press("backspace")
        assert values(screen) == saved
        await pilot.press("down", "o")
        best = ThresholdReview(run).optimum
        assert values(screen) == {**saved, "move_backward": best["move_backward"]}
        await pilot.press("down", "L", "O")
        assert values(screen) == {**best, "strafe_left": saved["strafe_left"]}
        assert keys(pilot)["optimise"] is False
        assert " >L  strafe_left" in text(pilot).replace("│", "")
        await pilot.press("u")
        assert values(screen) == {**saved, "move_backward": best["move_backward"]}
        await pilot.press("u")
        assert values(screen) == saved


async def test_a_number_is_typed(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        await pilot.press("0", ".", "3", "enter")
        assert values(screen)["move_forward"] == 0.3
        await pilot.press("=", "2", "enter")
        await until(pilot, lambda: "The threshold of move_forward must be" in text(pilot))
        await pilot.press("=", "x", "enter")
        await until(pilot, lambda: "'x' is not a number" in text(pilot))
        await pilot.press("9", "escape")
        assert values(screen)["move_forward"] == 0.3
        assert isinstance(pilot.app.focused, ThresholdsTable)


async def test_another_project_reads_its_own_words(
    cockpit: Make, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ControlThresholds, "titles", Titles())
    async with cockpit().run_test(size=SIZE) as pilot:
        await ready(pilot, run)
        shown = text(pilot)
        assert "validation groups of recordings/demo" in shown
        header = next(line for line in shown.splitlines() if "saved" in line and "Prec" in line)
        assert header.strip("│ ").split()[:8] == "Head Thr saved F1 Prec Rec alarms n+".split()
        assert "─ Heads ─" in shown
        assert not re.search(r"\b(controls?|idle FP|sessions?)\b", shown, re.IGNORECASE)


async def test_another_objective_has_another_best(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        await pilot.press("down", "j")
        await until(pilot, lambda: "─ F1 ─╯" in text(pilot) and keys(pilot)["optimise"])
        await pilot.press("o")
        head = ThresholdReview(run).heads["move_backward"].head
        distinct = np.unique(head.scores.astype(float))
        reached = {t: 2 * (on := head.scores >= t)[head.targets].sum() / (on.sum() + head.positives) for t in distinct}
        at = values(screen)["move_backward"]
        on = head.scores >= at
        assert 2 * on[head.targets].sum() / (on.sum() + head.positives) == max(reached.values())
        await pilot.press("j")
        await until(pilot, lambda: "F1 − 0.5 × false alarms" in text(pilot))


async def test_a_click_on_the_chart_puts_the_threshold_there(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        chart = screen.query_one(CurveChart)
        await pilot.click(CurveChart, offset=(9 + 3 * (chart.size.width - 11) // 4, 5))
        assert values(screen)["move_forward"] == pytest.approx(0.75, abs=0.01)
        await pilot.click(ThresholdsTable, offset=(8, 4))
        assert screen.query_one(ThresholdsTable).selected == "strafe_left"


@pytest.mark.behaviour("nothing-saved-shown-review")
async def test_only_what_was_reviewed_is_saved_and_the_history_tells(cockpit: Make, run: RunDirectory) -> None:
    before = config_of(run)
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        await pilot.press("h")
        await until(pilot, lambda: "Nothing saved yet." in text(pilot))
        await pilot.press("escape", "right_square_bracket", "S")
        await until(pilot, lambda: "What saving changes" in text(pilot))
        assert "move_forward           0.500 → 0.550" in text(pilot)
        await pilot.press("escape", "right_square_bracket", "enter")
        assert config_of(run) == before
        await pilot.press("S")
        await until(pilot, lambda: "0.500 → 0.600" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "saved as reviewed in control_config_v2.json" in text(pilot))
        assert config_of(run)["thresholds"]["action"][0] == pytest.approx(0.6)
        await until(pilot, lambda: "as saved" in text(pilot))
        await pilot.press("h")
        await until(pilot, lambda: "History of saves" in text(pilot))
        assert "1970-01-01 00:00:05" in text(pilot)
        assert "move_forward            0.500 → 0.600" in text(pilot)
        await pilot.press("escape", "u", "S")
        await until(pilot, lambda: "0.600 → 0.500" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: config_of(run)["thresholds"]["action"][0] == 0.5)
        await until(pilot, lambda: values(screen) == ThresholdReview(run).saved)


@pytest.mark.behaviour("control-without-positives-without")
async def test_what_cannot_be_tuned_is_kept_and_says_so(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        screen = await ready(pilot, run)
        await pilot.press(*["down"] * 10)
        assert screen.query_one(ThresholdsTable).selected == "swap_offhand"
        assert "! cannot tune: no positives; kept" in text(pilot)
        assert keys(pilot)["optimise"] is False
        await pilot.press("o")
        assert values(screen) == ThresholdReview(run).saved


@pytest.mark.behaviour("nothing-saved-shown-review")
async def test_without_an_export_there_is_a_review_but_no_save(cockpit: Make, folder: Path) -> None:
    run = reviewed_run(folder, review_arrays(), exported=False).run
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot, run)
        assert "! There is no exported config to save to yet: make one with `cockpit export controls-" in text(pilot)
        await pilot.press("O", "S")
        await until(pilot, lambda: "What saving changes" in text(pilot))
        assert keys(pilot)["Save"] is False
        await pilot.press("enter")
        assert "What saving changes" in text(pilot)
        assert not list(run.export.iterdir()) if run.export.is_dir() else True


@pytest.mark.behaviour("changes-made-screen-applied")
async def test_a_newer_best_epoch_is_told_and_read_with_the_changes_kept(cockpit: Make, run: RunDirectory) -> None:
    async with cockpit().run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(pilot, run)
        await pilot.press("right_square_bracket")
        os.utime(run.review / "about.json")  # as a copy of the run has it: written anew, the same
        await until(pilot, lambda: "The run has a newer best epoch" in text(pilot))
        await pilot.press("R")
        await until(pilot, lambda: "read again: nothing new; your changes and undo are kept" in text(pilot))
        assert not screen.tuning.review.stale  # type: ignore[union-attr]
        await pilot.press("u")
        assert values(screen)["move_forward"] == 0.5
        await pilot.press("right_square_bracket")
        write_review(run.review, review_arrays(seed=1), msgspec.structs.replace(ABOUT, epoch=7, step=70))
        await until(pilot, lambda: "The run has a newer best epoch" in text(pilot))
        await pilot.press("R")
        await until(pilot, lambda: "read again: the scores are of epoch 7 now, not 2" in text(pilot))
        await until(pilot, lambda: "epoch 7 · step 70" in text(pilot) and "1 changed" in text(pilot))
        told = "! The exported config is from epoch 2, these numbers are from best.pt at epoch 7"
        await until(pilot, lambda: told in text(pilot))
        assert values(screen)["move_forward"] == pytest.approx(0.55)
        await pilot.press("u")
        assert values(screen)["move_forward"] == 0.5
        await pilot.press("right_square_bracket")
        await leaving(pilot, "move_forward 0.500 → 0.550")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        await leaving(pilot, "review, then save")
        await pilot.press("a")
        await until(pilot, lambda: "What saving changes" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        await leaving(pilot, "Unapplied changes")
        await pilot.press("d")
        await until(pilot, lambda: not isinstance(pilot.app.screen, UnappliedScreen | ThresholdsScreen))


async def leaving(pilot: Pilot[None], words: str) -> None:
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(pilot.app.screen, UnappliedScreen) and words in text(pilot))


async def test_a_damaged_review_is_a_sentence(cockpit: Make, run: RunDirectory) -> None:
    (run.review / "about.json").write_text("{")
    async with cockpit().run_test(size=SIZE) as pilot:
        await pilot.app.push_screen(ThresholdsScreen(run))
        await until(pilot, lambda: "cannot be read as the record of a review" in " ".join(text(pilot).split()))
        assert not any(keys(pilot)[name] for name in ("optimise", "all", "review"))
        await pilot.press("o", "O", "left", "S", "h", "=", "1", "u", "L", "j", "backspace")
        assert pilot.app.is_running
