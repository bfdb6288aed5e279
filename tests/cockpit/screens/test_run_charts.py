import numpy as np
import pytest

from cockpit.core.metrics.steps import Steps
from cockpit.core.plot.frame import Sign
from cockpit.core.plot.lines import ChartLines, Member
from cockpit.core.run.follow import News
from cockpit.core.run.model import RunModel
from cockpit.core.series import Series
from cockpit.screens.run_charts import Chart, overview_charts
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import ABSENT
from tests.support.fake_run import epoch


def started(attempt: int = 1, resumed: int = 0) -> ev.RunStarted:
    return ev.RunStarted(
        project="p", device="cpu", epochs=9, steps_per_epoch=10, columns=[], stages=[], attempt=attempt,
        resumed_step=resumed,
    )  # fmt: skip


def row(number: int, attempt: int, **validation: float | None) -> ev.Epoch:
    made = epoch(number)
    made.attempt, made.validation = attempt, dict(validation)
    return made


def model(*events: ev.Event) -> RunModel:
    gathered = RunModel()
    gathered.add(News(events=events))
    return gathered


def loss_of(showing: RunModel) -> Chart:
    return overview_charts(showing)["Loss"]


def _score(showing: RunModel) -> Chart:
    return overview_charts(showing)["Score"]


def named(members: list[Member], role: str) -> list[tuple[list[float], list[float]]]:
    return [points(one) for kind, one in members if kind == role]


def points(one: Series) -> tuple[list[float], list[float]]:
    return one.step.tolist(), one.value.tolist()


@pytest.mark.behaviour("after-resume-older-checkpoint")
def test_what_a_resume_superseded_stays_as_a_faint_tail() -> None:
    lines, drawing = loss_of(
        model(
            started(),
            row(1, 1, loss=0.9),
            row(2, 1, loss=0.8),
            row(3, 1, loss=0.7),
            started(2, resumed=10),
            row(2, 2, loss=0.5),
            started(3, resumed=10),
            row(2, 3, loss=0.4),
        )
    )
    old = next(one.old for role, one in lines if role == "validation")
    assert [(x.tolist(), y.tolist()) for x, y in old] == [([20.0, 30.0], [0.8, 0.7]), ([20.0], [0.5])]
    assert named(lines, "validation") == [([10.0, 20.0], [0.9, 0.4])]
    assert [sign for sign in drawing.signs if sign.kind == "resume"] == [Sign("resume", 10.0)] * 2


def test_steps_stand_for_the_epochs_until_there_are_some() -> None:
    table = np.array([[0, 1], [5, 6], [0.9, 0.8], [1, 1], [1, 1]], dtype=np.float64)
    young = model(started())
    young.add(News(steps=Steps(table)))
    assert named(loss_of(young)[0], "logged")[0] == ([0.0, 1.0], [0.9, 0.8])
    young.add(News(events=(row(1, 1),)))
    (places, values), = named(loss_of(young)[0], "logged")  # fmt: skip
    assert places == [0.0, 1.0]
    assert values == [0.9, 0.8]
    assert named(loss_of(young)[0], "train") == [([10.0], [1.0])]


def test_not_measured_is_no_point_and_not_finite_is_a_gap() -> None:
    broken = row(2, 1, loss=None)
    broken.nonfinite = ["validation.loss"]
    lines, drawing = loss_of(model(started(), row(1, 1), broken, row(3, 1, loss=0.5)))
    (x, y), = named(lines, "validation")  # fmt: skip
    assert x == [20.0, 30.0]
    assert np.isnan(y[0])
    assert y[1] == 0.5
    assert drawing.view.ticks == ((10.0, "1"), (20.0, "2"), (30.0, "3"))


def test_steps_without_a_loss_are_no_points() -> None:
    """As in a log of another program that has a loss at some steps only; a loss that was no number is a gap."""
    showing = model(started())
    table = np.full((5, 3), np.nan)
    table[0], table[2] = (0, 1, 2), (0.5, ABSENT, np.nan)
    showing.add(News(steps=Steps(table)))
    places, values = named(loss_of(showing)[0], "logged")[0]
    assert places == [0.0, 2.0]
    assert values[0] == 0.5
    assert np.isnan(values[1])


def test_edits_and_the_best_epoch_are_marked() -> None:
    edit = cmd.SetLrScale(attempt=1, scale=0.5)
    best = row(2, 1)
    best.best = True
    _, drawing = _score(
        model(
            started(), row(1, 1), ev.CommandAnswer(command=edit, state="applied", step=12, attempt=1), best, row(3, 1)
        )
    )
    assert drawing.signs == (Sign("edit", 12.0), Sign("best", 20.0))


@pytest.mark.behaviour("run-keeps-id-over")
def test_resumes_are_marked_at_their_steps() -> None:
    events = (started(), row(1, 1), row(2, 1), started(attempt=2, resumed=10), row(2, 2), row(3, 2))
    _, drawing = _score(model(*events))
    assert Sign("resume", 10.0) in drawing.signs


def test_of_many_epochs_round_ones_are_labelled() -> None:
    _, drawing = _score(model(started(), *(row(number, 1) for number in range(1, 31))))
    assert drawing.view.ticks == tuple((number * 10.0, str(number)) for number in (5, 10, 15, 20, 25, 30))


@pytest.mark.behaviour("title-says-what-status-says")
def test_loss_and_score_share_an_axis_and_steps_are_smoothed() -> None:
    """Steps from 0 on, epochs from 1 on: what is above one another happened at one time."""
    showing = model(started(), row(1, 1), row(2, 1))
    table = np.full((6, 25), ABSENT)
    table[0], table[2] = np.arange(25.0), np.arange(25.0)
    showing.add(News(steps=Steps(table)))
    (loss, drawn), (score, beside) = overview_charts(showing).values()
    assert (drawn.view.start, drawn.view.end) == (beside.view.start, beside.view.end) == (0.0, 24.0)
    lines = {line.name: line for line in ChartLines().make(loss, drawn.look) if not line.behind}
    assert lines["step"].points.y[-1] < 20  # smoothed
    assert lines["step"].raw[-1] == showing.steps.last("loss") == 24  # what title and status line say
    (line,) = ChartLines().make(score, beside.look)
    assert line.points.y.tolist() == line.raw.tolist()
