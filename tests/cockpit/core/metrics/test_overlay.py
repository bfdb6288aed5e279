"""Several logs in one set of charts."""

from __future__ import annotations

import numpy as np
import pytest

from cockpit.core.metrics.overlay import MOST, Overlay, by_metric
from cockpit.core.plot.frame import STYLE, View
from cockpit.core.plot.glyphs import ASCII, UNICODE, Glyphs
from cockpit.core.plot.lines import ChartLines, Look, Member
from cockpit.core.plot.picture import paint
from cockpit.core.series import Series
from tests.support.fake_metrics import BEGAN, FakeMetrics


class Later(FakeMetrics):
    """The same run on another day, with a metric of its own."""

    def series(self) -> dict[str, Series]:
        made = {name: Series(name, s.step, s.epoch, s.time + 86400, s.value) for name, s in super().series().items()}
        return made | {"extra": made["score"]}


def overlay(*sources: FakeMetrics) -> Overlay:
    made = Overlay(sources)
    made.poll()
    return made


def test_every_metric_is_a_chart_with_a_line_a_run() -> None:
    both = overlay(FakeMetrics(more=1), Later(more=0))
    charts = by_metric(both.series())
    assert charts["train.loss"] == [("run-1", "1:train.loss"), ("run-2", "2:train.loss")]
    assert charts["validation.loss"] == [("run-1", "1:validation.loss"), ("run-2", "2:validation.loss")]
    assert charts["gpu/0"] == [("run-1", "1:gpu/0")]
    assert charts["extra"] == [("run-2", "2:extra")]
    assert both.names == {"run-1": FakeMetrics.title, "run-2": FakeMetrics.title}


def test_time_begins_with_each_run() -> None:
    first, second = FakeMetrics(), Later()
    series = overlay(first, second).series()
    expected = first.series()["loss"].time - BEGAN
    assert np.array_equal(series["1:loss"].time, expected)
    assert np.array_equal(series["2:loss"].time, expected)
    assert np.array_equal(series["2:loss"].step, second.series()["loss"].step)


def test_only_what_has_grown_is_made_again() -> None:
    first, second = FakeMetrics(), FakeMetrics()
    both = overlay(first, second)
    assert not both.poll()
    before = both.series()
    second.steps = 404
    assert both.poll()
    after = both.series()
    assert after["1:loss"] is before["1:loss"]
    assert len(after["2:loss"].value) == 404
    assert both.problems() == [f"{FakeMetrics.title}: 2 bad lines in events.jsonl"]


def test_more_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="9 logs"):
        Overlay([FakeMetrics()] * (MOST + 1))


@pytest.mark.behaviour("eight-runs-told-apart")
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_each_of_eight_runs_has_a_colour_and_a_sign_in_picture_and_title(glyphs: Glyphs) -> None:
    step = np.arange(100.0)
    members: list[Member] = [
        (role, Series(name, step, step, step, np.full(100, float(name[0]))))
        for role, name in by_metric(f"{place}:loss" for place in range(1, MOST + 1))["loss"]
    ]
    lines = ChartLines().make(members, Look())
    cells = paint("loss", lines, (), View("step", 0.0, 99.0), (150, 40), glyphs)
    for place, sign in enumerate(glyphs.runs, 1):
        of_run = (cells.styles == STYLE[f"run-{place}"]) & (cells.texts == sign)
        rows, columns = np.nonzero(of_run[1:])
        assert len(set(rows.tolist())) == 1  # a constant
        assert len(columns) >= 5
        assert of_run[0].sum() == 1  # the title
