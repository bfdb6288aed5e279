"""Losses say with which weights they were computed: in the table, the charts, a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.cli import main
from cockpit.core.compare.tables import values_table
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.metrics.weight_sets import WeightSets, edited_weights
from cockpit.core.table.table import TableText
from cockpit.widgets.charts_words import weights_at
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.spec import Column
from tests.support.compared import drawn
from tests.support.fake_run import CONFIG, FakeRun, epoch

USUAL = {"action": 1.0, "look": 0.5}


def row(number: int, **weights: float) -> ev.Epoch:
    return replace(epoch(number), weights=USUAL | weights)


@pytest.mark.behaviour("losses-computed-other-loss")
def test_each_set_of_weights_has_a_letter_but_the_first() -> None:
    rows = [row(1), row(2), row(3, look=0.8), row(4, look=0.8, action=2.0), row(5), row(6, look=0.8)]
    sets = WeightSets()
    assert sets.legend() == ""
    sets.note(rows[:2])
    assert sets.legend() == ""
    for rest in (rows[2:], rows[3:]):  # some of them again, as after a resume
        sets.note(rest)
        assert [sets.mark(one) for one in rows] == ["", "", "b", "c", "", "b"]
    assert sets.words(rows[0]) == ""
    assert sets.words(rows[3]) == "c: action 2, look 0.8"
    assert sets.legend().splitlines()[1:] == ["b  look 0.8, from epoch 3", "c  action 2, look 0.8, from epoch 4"]


def test_more_sets_than_letters_are_no_mistake() -> None:
    rows = [row(number, look=number / 100) for number in range(1, 40)]
    sets = WeightSets()
    sets.note(rows)
    assert [sets.mark(one) for one in (*rows[:2], *rows[24:28], rows[-1])] == ["", "b", "y", "z", "+", "+", "+"]


def test_a_log_without_weights_has_no_marks() -> None:
    foreign = replace(epoch(1), weights={})
    sets = WeightSets()
    sets.note([foreign, row(2)])
    assert [sets.mark(foreign), sets.mark(row(2))] == ["", ""]


def test_a_mark_moves_nothing_and_stands_apart_before_the_first_loss_that_depends_on_the_weights() -> None:
    columns = [Column("Ep", "epoch", "d"), Column("Act", "train.action"), Column("TrLoss", "train.loss")]
    columns += [Column("loss", "validation.loss"), Column("Score", "score")]
    text = TableText(columns)
    one = replace(epoch(4), validation={"loss": 0.75})
    assert text.row(one) == "   4 0.500   0.250 0.750 0.400"
    assert text.row(one, "b") == "   4 0.500 b 0.250 0.750 0.400"
    assert text.mark_place is not None
    assert text.row(one, "b")[text.mark_place] == "b"
    assert text.header() == "  Ep   Act  TrLoss  loss Score"
    assert TableText(columns[:2]).mark_place is None


def test_the_weights_of_every_edit_are_those_before_it_too(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started().epochs(1, 2, 3)
    edits: list[cmd.Edit] = [
        cmd.SetLossWeights(attempt=1, weights={"look": 0.8}),
        cmd.SetLrScale(attempt=1, scale=0.5),
        cmd.SetLossWeights(attempt=1, weights={"action": 2.0}),
    ]
    for place, edit in enumerate(edits, 1):
        fake.say(ev.CommandAnswer(command=edit, state="applied", step=5 * place))
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    marks = [(mark.step, mark.weights) for mark in metrics.marks() if mark.kind == "edit"]
    assert marks == [(5, "weights look 0.8"), (10, ""), (15, "weights look 0.8, action 2")]
    assert weights_at(marks, 4) == "weights as configured"
    assert [weights_at(marks, at) for at in (5, 14, 15, 99)] == [marks[0][1], marks[0][1], marks[2][1], marks[2][1]]
    assert weights_at(marks, None) == weights_at([(10, "")], 12) == edited_weights([]) == ""


def test_a_comparison_of_runs_with_different_weights_says_so(tmp_path: Path) -> None:
    runs = [FakeRun(tmp_path, f"controls-20261127-201400-{word}").begin().started() for word in ("amber", "birch")]
    for fake in runs:
        fake.epochs(1, 2, best=2).end("finished")
    assert "loss weights differ" not in values_table(drawn(runs)).note
    runs[1].run.config.write_text(CONFIG.replace("look: 0.5", "look: 0.8"))
    note = values_table(drawn(runs)).note
    assert "loss weights differ: compare the losses of heads, or the score" in note


def test_the_printed_table_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeRun(tmp_path).begin().started().say(row(1), row(2, look=0.8), row(3, look=0.8)).end("finished")
    assert main(["tail", str(fake.run.path)]) == 0
    out, err = capsys.readouterr()
    shown = zip(out.splitlines()[2:], ("1   1.000 ", "2 b 0.500 ", "3 b 0.333 "), strict=True)
    assert all(line.lstrip().startswith(row) for line, row in shown)
    assert err.count("losses computed with other loss weights are marked b: look 0.8") == 1
