import numpy as np

from cockpit.core.follow import News
from cockpit.core.model import RunModel
from cockpit.core.series import Steps
from cockpit.screens.run_charts import loss_curves, score_curve
from cockpit.widgets.chart import Line, Mark
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


def named(lines: list[Line], kind: str) -> list[tuple[list[float], list[float]]]:
    return [(line.x.tolist(), line.y.tolist()) for line in lines if line.kind == kind]


def test_what_a_resume_superseded_stays_as_a_faint_tail() -> None:
    lines, marks, _ = loss_curves(
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
    assert named(lines, "old") == [([20.0, 30.0], [0.8, 0.7]), ([20.0], [0.5])]
    assert named(lines, "validation") == [([10.0, 20.0], [0.9, 0.4])]
    assert [mark for mark in marks if mark.kind == "resume"] == [Mark("resume", "↻", 10.0)] * 2


def test_steps_stand_for_the_epochs_until_there_are_some() -> None:
    table = np.array([[0, 1], [5, 6], [0.9, 0.8], [1, 1], [1, 1]], dtype=np.float64)
    young = model(started())
    young.add(News(steps=Steps(table)))
    assert named(loss_curves(young)[0], "train")[0] == ([0.0, 1.0], [0.9, 0.8])
    young.add(News(events=(row(1, 1),)))
    assert named(loss_curves(young)[0], "step") == [([0.0, 1.0], [0.9, 0.8])]
    assert named(loss_curves(young)[0], "train") == [([10.0], [1.0])]


def test_not_measured_is_no_point_and_not_finite_is_a_gap() -> None:
    broken = row(2, 1, loss=None)
    broken.nonfinite = ["validation.loss"]
    lines, _, ticks = loss_curves(model(started(), row(1, 1), broken, row(3, 1, loss=0.5)))
    (x, y), = named(lines, "validation")  # fmt: skip
    assert x == [20.0, 30.0]
    assert np.isnan(y[0])
    assert y[1] == 0.5
    assert ticks == {10.0: 1, 20.0: 2, 30.0: 3}


def test_steps_without_a_loss_are_no_points() -> None:
    """As in a log of another program that has a loss at some steps only; a loss that was no number is a gap."""
    showing = model(started())
    table = np.full((5, 3), np.nan)
    table[0], table[2] = (0, 1, 2), (0.5, ABSENT, np.nan)
    showing.add(News(steps=Steps(table)))
    places, values = named(loss_curves(showing)[0], "train")[0]
    assert places == [0.0, 2.0]
    assert values[0] == 0.5
    assert np.isnan(values[1])


def test_edits_and_the_best_epoch_are_marked() -> None:
    edit = cmd.SetLrScale(attempt=1, scale=0.5)
    best = row(2, 1)
    best.best = True
    _, marks, _ = score_curve(
        model(
            started(), row(1, 1), ev.CommandAnswer(command=edit, state="applied", step=12, attempt=1), best, row(3, 1)
        )
    )
    assert marks == [Mark("edit", "▲", 12.0), Mark("best", "★", 20.0)]
