"""The screen of foreign logs, driven by its keys, over files that grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from cockpit.app import CockpitApp
from cockpit.core.foreign import logs as logs_module
from cockpit.core.foreign.logs import Logs
from cockpit.screens.watch import WatchScreen
from cockpit.widgets import charts_panel
from cockpit.widgets.metric_chart import MetricChart
from tests.cockpit.driving import keys, text, until

Make = Callable[..., CockpitApp]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts_panel, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(charts_panel, "SHOW_SECONDS", 0.05)
    monkeypatch.setattr(logs_module, "SCAN_SECONDS", 0.05)


def log(path: Path, steps: range, **metrics: float) -> Path:
    """Append rows; a metric's value is its number times the step."""
    with open(path, "a") as file:
        for step in steps:
            row = {"step": step} | {name: value * step for name, value in metrics.items()}
            file.write(json.dumps(row) + "\n")
    return path


def charts(pilot: Pilot[None]) -> list[str | None]:
    return [chart.name for chart in pilot.app.screen.query(MetricChart) if chart.display]


def listed(pilot: Pilot[None]) -> list[str]:
    options = pilot.app.screen.query_one(OptionList)
    return [str(options.get_option_at_index(place).prompt) for place in range(options.option_count)]


async def test_one_log_has_no_list_and_grows(cockpit: Make, tmp_path: Path) -> None:
    path = log(tmp_path / "metrics.jsonl", range(20), loss=0.5, lr=0.25)
    app = cockpit(watch=Logs([path]))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: charts(pilot) == ["loss", "lr"] and "9.5" in text(pilot))
        assert isinstance(app.screen, WatchScreen)
        assert not app.screen.query_one(OptionList).display
        assert "next log" not in keys(pilot)
        assert "metrics.jsonl" in text(pilot).splitlines()[0]
        log(path, range(20, 31), loss=0.5, lr=0.25)
        await until(pilot, lambda: " 15 " in text(pilot))
        await pilot.press("q")
        assert app.return_code == 0


async def test_several_logs_are_listed_with_rows_newest_values_and_problems(cockpit: Make, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", range(3), reward=2.0, loss=0.25, other=1.0)
    path = log(tmp_path / "[b].jsonl", range(1500), accuracy=0.5)
    path.write_text(path.read_text() + "broken\n" + '{"step": 1500, "accuracy": NaN}\n')
    app = cockpit(watch=Logs([tmp_path]))
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: len(listed(pilot)) == 2 and charts(pilot))
        first, second = (entry.split() for entry in listed(pilot))
        assert first == ["[b].jsonl", "1,501", "rows", "!", "1", "problem", "accuracy", "nan"]
        assert second == ["a.jsonl", "3", "rows", "loss", "0.5", "reward", "4"]  # the loss before what came first
        assert charts(pilot) == ["accuracy"]
        assert "line 1501" in text(pilot)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: charts(pilot) == ["loss", "reward", "other"])
        assert "a.jsonl" in text(pilot).splitlines()[0]
        assert "line 1501" not in text(pilot)
        assert keys(pilot)["smooth"]  # the charts kept the focus
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: charts(pilot) == ["accuracy"])


async def test_a_log_that_appears_in_a_watched_folder_joins_the_list(cockpit: Make, tmp_path: Path) -> None:
    log(tmp_path / "b.jsonl", range(3), loss=1.0)
    app = cockpit(watch=Logs([tmp_path]))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: charts(pilot) == ["loss"])
        log(tmp_path / "a.jsonl", range(5), score=1.0)
        await until(pilot, lambda: len(listed(pilot)) == 2)
        assert listed(pilot)[1].split()[:3] == ["a.jsonl", "5", "rows"]  # below: what was chosen stays where it was
        assert charts(pilot) == ["loss"]
        await pilot.click(OptionList, offset=(3, 4))
        await until(pilot, lambda: charts(pilot) == ["score"])


async def test_a_log_of_epochs_alone_is_drawn_over_epochs(cockpit: Make, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("epoch,loss\n0,5\n1,4\n2,3\n")
    async with cockpit(watch=Logs([path])).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "by epoch" in text(pilot) and "no value" not in text(pilot))


async def test_an_empty_log_waits_for_its_first_row(cockpit: Make, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.touch()
    async with cockpit(watch=Logs([path])).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "no metric logged yet" in text(pilot))
        log(path, range(1), loss=1.0)
        await until(pilot, lambda: charts(pilot) == ["loss"])


async def test_another_log_is_shown_at_the_press_of_its_key(
    cockpit: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with the next look at the files, nor with the next second's picture."""
    for place, name in enumerate("ab"):
        log(tmp_path / f"{name}.jsonl", range(20), **{f"only_{name}": place + 1})
    app = cockpit(watch=Logs([tmp_path]))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: charts(pilot) == ["only_a"] and len(listed(pilot)) == 2)
        monkeypatch.setattr(charts_panel, "POLL_SECONDS", 6000.0)
        log(tmp_path / "a.jsonl", range(20, 31), only_a=1)  # read with the last look of before
        await until(pilot, lambda: " 30 " in text(pilot))
        app.screen.query_one(charts_panel.ChartsPanel)._throttle._seconds = 6000.0
        await pilot.press("]")
        await until(pilot, lambda: charts(pilot) == ["only_b"] and " 38 " in text(pilot))


def drawn(pilot: Pilot[None], chart: str) -> list[str]:
    """The styles of a chart's lines, and so of what logs."""
    (found,) = (one for one in pilot.app.screen.query(MetricChart) if one.name == chart and one.display)
    return [line.style for line in found.lines]


@pytest.mark.behaviour("logs-other-programs-lie")
async def test_logs_are_laid_over_one_another_and_hidden_among_the_others(cockpit: Make, tmp_path: Path) -> None:
    for place in range(9):  # one more than can be told apart
        log(tmp_path / f"{place}.jsonl", range(4), loss=place + 1.0, **({"alone": 1.0} if place == 0 else {}))
    app = cockpit(watch=Logs([tmp_path]))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: len(listed(pilot)) == 9 and charts(pilot) == ["loss", "alone"])
        assert keys(pilot)["overlay"]
        assert not {"one log", "hide, show"} & set(keys(pilot))
        assert [one.partition("\n")[0].strip() for one in listed(pilot)] == [f"{place}.jsonl" for place in range(9)]
        await pilot.press("c")
        await until(pilot, lambda: len(drawn(pilot, "loss")) == 8)
        assert drawn(pilot, "loss") == [f"run-{place}" for place in range(1, 9)]
        assert drawn(pilot, "alone") == ["run-1"]
        assert keys(pilot)["one log"]
        assert "compare" not in keys(pilot)
        assert "overlaid" in text(pilot).splitlines()[0]
        signs = [one.partition("\n")[0][:2].strip() for one in listed(pilot)]
        assert len(set(signs)) == 9  # eight signs, and the ninth log has none yet
        assert signs[8] == ""
        log(tmp_path / "2.jsonl", range(4, 9), loss=3.0)  # 24 at its last step, where no other log is
        await until(pilot, lambda: " 24 " in text(pilot))
        await pilot.press("right_square_bracket", "space")
        await until(pilot, lambda: "alone" in text(pilot) and signs[1] == listed(pilot)[8][0])
        assert listed(pilot)[1][0] == " "
        assert [one[0] for one in listed(pilot)[2:8]] == signs[2:8]  # the others kept theirs
        await pilot.press("space")
        await until(pilot, lambda: [one[0].strip() for one in listed(pilot)] == signs)
        await pilot.press("c")
        alone = ["train-faint", "train"]  # log 1, under the cursor: what it logged and that smoothed
        await until(pilot, lambda: drawn(pilot, "loss") == alone)
        assert "1.jsonl" in text(pilot).splitlines()[0]


async def test_one_log_has_nothing_to_be_laid_over(cockpit: Make, tmp_path: Path) -> None:
    app = cockpit(watch=Logs([log(tmp_path / "a.jsonl", range(3), loss=1.0)]))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: charts(pilot) == ["loss"])
        assert "compare" not in keys(pilot)
