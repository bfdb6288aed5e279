"""Drafts of loss weights, presets, and the planned learning rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.series import Series
from cockpit.core.steering.course import Course, Row
from cockpit.core.steering.loss_weights import RECENT, WeightDraft, nudged, recent_means, scaled, shares
from cockpit.core.steering.lr_plan import planned
from cockpit.core.steering.number_keys import typed_number
from cockpit.core.steering.presets import Presets
from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer
from engines.contract.steps import read_series
from engines.runs.history import History
from tests.engines.toy import ToyRun

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-3, 1e3), min_size=2)


@given(weights=WEIGHTS, data=st.data())
def test_equal_shares_are_equal_and_leave_the_sum(weights: dict[str, float], data: st.DataObject) -> None:
    losses = {head: data.draw(st.floats(1e-3, 1e3)) for head in weights}
    draft = WeightDraft(weights)
    before = sum(weights[head] * losses[head] for head in weights)
    assert draft.equalise(losses)
    now = shares(draft.new, losses)
    assert all(share == pytest.approx(1 / len(weights), rel=0.02) for share in now.values())
    assert sum(draft.new[head] * losses[head] for head in weights) == pytest.approx(before, rel=0.01)


def test_raw_losses_are_of_the_last_steps_and_none_of_a_head_that_is_off() -> None:
    def series(name: str, step: np.ndarray, value: np.ndarray) -> Series:
        return Series(name, step, step / 10, step + 1e9, value)

    step = np.arange(200.0)
    told = {
        "loss": series("loss", step, step),
        "on": series("on", step, np.where(step == 190, np.nan, 2 * step)),
        "rare": series("rare", step[::7], step[::7]),
        "off": series("off", step[:90], step[:90]),
    }
    recent = step[-RECENT:]
    assert recent_means(told, ["on", "rare", "off", "unknown"]) == {
        "on": pytest.approx(2 * recent[recent != 190].mean()),
        "rare": pytest.approx(recent[recent % 7 == 0].mean()),
        "off": None,
        "unknown": None,
    }
    assert recent_means({"off": told["off"]}, ["off"]) == {"off": pytest.approx(step[40:90].mean())}


def test_shares_are_of_losses_as_their_scales_make_them_pull() -> None:
    def series(name: str, value: float) -> Series:
        step = np.arange(9.0)
        return Series(name, step, step, step, np.full(9, value))

    told = {name: series(name, value) for name, value in {"loss": 5.0, "a": 2.0, "b": 3.0, "b.scale": 1 / 3}.items()}
    losses = recent_means(told, ["a", "b", "off"])
    assert losses == {"a": 2.0, "b": 3.0, "off": None}
    pulls = scaled(losses, told)
    assert pulls == {"a": 2.0, "b": pytest.approx(1.0), "off": None}
    assert shares({"a": 1.0, "b": 4.0, "off": 1.0}, pulls) == {
        "a": pytest.approx(1 / 3), "b": pytest.approx(2 / 3), "off": None,
    }  # fmt: skip


def test_shares_leave_out_what_is_not_known() -> None:
    assert shares({"a": 2.0, "b": 1.0, "c": 5.0}, {"a": 1.0, "b": -2.0, "c": None}) == {"a": 0.5, "b": 0.5, "c": None}
    assert shares({"a": 1.0}, {"a": float("nan")}) == {"a": None}


@given(st.floats(1e-4, 1e3), st.booleans())
def test_a_nudge_up_and_down_comes_back_to_the_grid(weight: float, fine: bool) -> None:
    up, down = nudged(weight, 1, fine=fine), nudged(weight, -1, fine=fine)
    assert down < weight < up
    assert up - weight <= 0.55 * weight + 1e-4
    assert down >= 0


@pytest.mark.parametrize(
    ("weight", "up", "down"), [(0.5, 0.55, 0.45), (1.0, 1.5, 0.95), (0.1, 0.15, 0.095), (0.0, 0.05, 0.0)]
)
def test_steps_of_arrow_keys(weight: float, up: float, down: float) -> None:
    assert (nudged(weight, 1), nudged(weight, -1)) == (up, down)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), (".5", 0.5), ("5.", 5.0), (" 1e-3 ", 1e-3), ("+2E1", 20.0), ("-3", -3.0)]
    + [(text, None) for text in ("1_0", "nan", "inf", "1e999", "", "e5", "1,5", "٣", "0x1", "1e", ".")],
)
def test_a_number_is_what_people_write(text: str, value: float | None) -> None:
    assert typed_number(text) == value


def test_a_factor_of_the_rate_stays_where_an_engine_takes_it() -> None:
    course = Course.of({"epochs": 10, "patience": 4, "lr": 1e-3})
    assert course.type_in("rate", "1e9") == "1e9 is not a factor; expected a number from 1e-06 to 1000, as in 0.5."
    assert "not a number of epochs" in course.type_in("epochs", "1e12")
    assert course.new == course.now
    course.type_in("rate", "1000")
    course.nudge("rate", 1)
    assert course.new["rate"] == 1000


def test_what_is_not_known_yet_cannot_be_set() -> None:
    unread, without_patience = Course(0.0), Course.of({"epochs": 10, "lr": 1e-3})
    cases: list[tuple[Course, Row]] = [(unread, "rate"), (unread, "epochs"), (without_patience, "patience")]
    for course, row in cases:
        course.nudge(row, 1)
        assert "not known yet" in course.type_in(row, "5")
        assert course.command(row, 1) is None
    assert without_patience.type_in("epochs", "5") == ""
    assert without_patience.new == {"rate": 1.0, "epochs": 5}


def test_what_a_person_has_not_touched_follows_what_is_in_force() -> None:
    draft = WeightDraft({"a": 1.0, "b": 1.0})
    draft.set({"a": 3.0})
    assert draft.in_force({"a": 2.0, "b": 2.0})
    assert (draft.now, draft.new) == ({"a": 2.0, "b": 2.0}, {"a": 3.0, "b": 2.0})
    assert not draft.in_force({"a": 2.0})
    assert draft.undo()
    assert not draft.undo()


def test_a_draft_may_go_back_to_what_held_before_an_edit() -> None:
    """Each look at the run takes what is in force as it is now, not one edit after another."""
    history = History()
    for step, weight, epochs in ((3, 1.0, 10), (7, 2.0, 20)):
        for command in (
            cmd.SetLossWeights(attempt=1, weights={"a": weight}), cmd.SetEpochs(attempt=1, epochs=epochs)
        ):  # fmt: skip
            history.add(CommandAnswer(command=command, state="applied", attempt=1, step=step))
    draft, course = WeightDraft({"a": 0.5}), Course.of({"epochs": 10, "patience": 4, "lr": 1e-3})
    draft.follow(history)
    course.in_force(history)
    assert (draft.now, course.now) == ({"a": 2.0}, {"rate": 1.0, "epochs": 20, "patience": 4})
    draft.set({"a": 1.0})
    course.type_in("epochs", "10")
    draft.follow(history)
    course.in_force(history)
    assert (draft.changes, course.new["epochs"]) == ({"a": 1.0}, 10)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("loss_weights: {lok: 1}", "there is no head 'lok' (did you mean 'look'?)"),
        ("loss_weights: {look: -1}", "the weight of look is -1, expected a finite number of 0 or more"),
        ("loss_weights: {look: yes}", "the weight of look is"),
        ("weights: {}", "has no weights"),
        ("[", "cannot be read as a preset"),
        ("", "has no weights"),
        ("{project: controls-x, loss_weights: {look: 1}}", "is a preset of the project 'controls-x'"),
    ],
)
def test_a_bad_preset_is_told_in_a_sentence(tmp_path: Path, content: str, fault: str) -> None:
    presets = Presets(tmp_path, "controls")
    (tmp_path / "controls-x.yaml").write_text(content)
    with pytest.raises(UserError) as told:
        presets.load("x", {"look": 1.0})
    assert fault in str(told.value)


def test_presets_belong_to_a_project_and_have_plain_names(tmp_path: Path) -> None:
    presets = Presets(tmp_path / "none yet", "sim")
    assert presets.names() == []
    with pytest.raises(UserError, match="is not a valid"):
        presets.save("../x", {"a": 1.0})
    presets.save("calm", {"a": 0.125})
    (tmp_path / "none yet" / "sim-no name.yaml").write_text("loss_weights: {a: 1}")
    assert presets.names() == ["calm"]
    assert presets.load("calm", {"a": 1.0, "b": 1.0}) == {"a": 0.125}
    assert Presets(tmp_path / "none yet", "controls").names() == []


STAGES = [
    {"name": "one", "epochs": 2, "lr": 0.02}, {"name": "two", "epochs": 1, "restart_schedule": False},
    {"name": "three", "restart_schedule": True},
]  # fmt: skip


@pytest.mark.parametrize("stages", [[], STAGES], ids=["plain", "stages"])
def test_the_planned_rate_is_the_one_that_is_trained_with(tmp_path: Path, stages: list[dict[str, object]]) -> None:
    toy = ToyRun(tmp_path, epochs=6, stages=stages)
    toy.train()
    steps, rates = read_series(toy.run.steps, "lr")
    tree = toy.settings.model_dump(mode="json")["training"]
    places, plan = planned(tree, 6, toy.trainer.schedule.steps_per_epoch, scale=1.0)
    assert np.allclose(places * toy.trainer.schedule.steps_per_epoch, steps)
    assert np.allclose(plan, rates)
    later, rest = planned(tree, 6, toy.trainer.schedule.steps_per_epoch, scale=0.5, from_epoch=2.5)
    assert np.allclose(rest, rates[len(steps) - len(later) :] / 2)
