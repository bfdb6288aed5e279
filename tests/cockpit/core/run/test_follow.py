"""The follower of one run and the model built from its news."""

from pathlib import Path

import numpy as np
import pytest

from cockpit.core.run import follow
from cockpit.core.run.follow import News, RunFollower
from cockpit.core.run.model import RunModel
from cockpit.core.run.orders import Order
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from engines.runs import launch
from tests.support.fake_run import FakeRun


def followed(follower: RunFollower, model: RunModel) -> RunModel:
    """Until nothing is new."""
    while (news := follower.poll()) is not None:
        model.add(news)
    return model


@pytest.fixture
def fake(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path)


def test_a_late_look_and_a_close_look_end_in_the_same(fake: FakeRun) -> None:
    close, model = RunFollower(fake.run), RunModel()
    order = cmd.SetLossWeights(attempt=1, weights={"look": 0.8})
    for happens in (
        fake.begin,
        fake.started,
        lambda: fake.epochs(1, 2, best=1),
        lambda: launch.send(fake.run, order),
        lambda: fake.say(ev.CommandAnswer(command=order, state="seen", step=21)),
        lambda: fake.say(ev.CommandAnswer(command=order, state="applied", step=22)),
        lambda: fake.say(ev.Alert(code="nonfinite", level="error", text="the loss is nan")),
        lambda: fake.epochs(3, best=3),
        lambda: fake.end("stopped"),
    ):
        happens()
        followed(close, model)
    late = followed(RunFollower(fake.run), RunModel())
    assert list(model.history.epochs) == list(late.history.epochs) == [1, 2, 3]
    assert model.status == late.status
    assert model.notable == late.notable
    assert model.status.state == "stopped"
    assert model.info is not None
    assert model.info.id == fake.id
    assert [entry.outcome for entry in model.notable if isinstance(entry, Order)] == ["applied at step 22"]


def test_nothing_new_is_no_news(fake: FakeRun) -> None:
    follower = RunFollower(fake.begin().started().run)
    assert follower.poll() is not None
    assert follower.poll() is None


def test_epochs_are_told_before_the_steps_are_read(fake: FakeRun) -> None:
    """A million steps take a moment: what can be told at once does not wait for them."""
    run = fake.begin().started().epochs(1, 2).run
    writer = StepWriter(run.steps, ["loss"])
    writer.append(np.array([[0.0, 1.0, 0.5], [1.0, 1.0, 0.25]]))
    follower = RunFollower(run)
    first = follower.poll()
    assert first is not None
    assert [event.epoch for event in first.events if isinstance(event, ev.Epoch)] == [1, 2]
    assert first.steps is None
    assert follower.behind
    second = follower.poll()
    assert second is not None
    assert second.steps is not None
    assert second.steps.column("loss").tolist() == [0.5, 0.25]
    assert not follower.behind


def test_the_outcome_of_an_order_step_by_step(fake: FakeRun) -> None:
    follower, model = RunFollower(fake.begin().started().run), RunModel()
    stop, pause = cmd.Stop(attempt=1), cmd.Pause(attempt=1)
    for order in (stop, pause):
        launch.send(fake.run, order)
    followed(follower, model)
    assert outcome(model, stop) == "sent"
    fake.say(ev.CommandAnswer(command=stop, state="seen", step=1500))
    followed(follower, model)
    assert outcome(model, stop) == "received"
    fake.say(
        ev.CommandAnswer(command=stop, state="applied", step=1501),
        ev.CommandAnswer(command=pause, state="refused", step=1501, reason="the run is stopping"),
    )
    followed(follower, model)
    assert outcome(model, stop) == "applied at step 1,501"
    assert outcome(model, pause) == "refused because the run is stopping"


def outcome(model: RunModel, command: cmd.Command) -> str:
    order = model.order(command.id)
    assert order is not None
    return order.outcome


def test_an_edit_replayed_by_a_resume_is_listed_once_with_its_first_step(fake: FakeRun) -> None:
    edit = cmd.SetLrScale(attempt=1, scale=0.5)
    fake.begin().started().say(ev.CommandAnswer(command=edit, state="applied", step=12))
    fake.begin().started(resumed_step=10).say(ev.CommandAnswer(command=edit, state="applied", step=12))
    model = followed(RunFollower(fake.run), RunModel())
    assert [entry.outcome for entry in model.notable if isinstance(entry, Order)] == ["applied at step 12"]


def test_a_resume_supersedes_and_a_replaced_log_starts_again(fake: FakeRun) -> None:
    follower, model = RunFollower(fake.begin().started().epochs(1, 2, 3).run), RunModel()
    followed(follower, model)
    fake.begin().started(resumed_step=10)
    followed(follower, model)
    assert list(model.history.epochs) == [1]
    assert [row.epoch for row in model.history.superseded] == [2, 3]
    fake.run.events.write_bytes(b"")
    fake.epochs(7)
    followed(follower, model)
    assert list(model.history.epochs) == [7]


def test_damage_is_counted_and_never_fatal(fake: FakeRun) -> None:
    fake.begin().started()
    with open(fake.run.events, "ab") as file:
        file.write(b"nonsense\n[]\nnull\n\x00\x00\xff\n")
    with open(fake.run.commands, "ab") as file:
        file.write(b'{"type": "no such"}\n')
    fake.epochs(1)
    model = followed(RunFollower(fake.run), RunModel())
    assert model.damaged == ("4 bad lines in events.jsonl, the first is line 3", "1 bad line in commands.jsonl, line 1")
    assert list(model.history.epochs) == [1]


def test_an_unreadable_record_is_a_problem_told_and_the_rest_goes_on(fake: FakeRun) -> None:
    fake.begin().started()
    whole = fake.run.info_file.read_bytes()
    fake.run.info_file.write_bytes(b"{garbage")
    follower, model = RunFollower(fake.run), RunModel()
    followed(follower, model)
    assert "run.json" in model.problem
    fake.epochs(1)
    fake.run.info_file.write_bytes(whole)
    followed(follower, model)
    assert model.problem == ""
    assert model.info is not None
    assert list(model.history.epochs) == [1]


def test_a_run_whose_directory_goes_stays_in_view_and_is_found_again(fake: FakeRun, tmp_path: Path) -> None:
    fake.begin().started().epochs(1, 2).end("finished")
    follower, model = RunFollower(fake.run), RunModel()
    followed(follower, model)
    fake.run.path.rename(tmp_path / "elsewhere")
    followed(follower, model)
    assert (model.status.state, model.status.detail, model.problem) == ("lost", "its directory is gone", "")
    assert list(model.history.epochs) == [1, 2]
    (tmp_path / "elsewhere").rename(fake.run.path)
    followed(follower, model)
    assert (model.status.state, list(model.history.epochs)) == ("finished", [1, 2])


def test_the_budget_is_read_from_the_config_again_when_it_changes(fake: FakeRun) -> None:
    follower, model = RunFollower(fake.run), RunModel()
    assert followed(follower, model).budget_usd is None
    fake.run.config.write_text("cost:\n  budget_usd: 100\n")
    assert followed(follower, model).budget_usd == 100.0
    fake.run.config.write_text("cost: [not, a, section\n")
    assert followed(follower, model).problem == ""


def test_steps_and_log_arrive(fake: FakeRun) -> None:
    follower, model = RunFollower(fake.begin().started().run), RunModel()
    StepWriter(fake.run.steps, ["time", "loss"]).append(np.array([[0.0, 1, 5.0, 0.7], [1.0, 1, 6.0, 0.6]]))
    fake.run.stdout.write_text("hello\n")
    followed(follower, model)
    assert model.step == 2
    assert model.steps.column("loss").tolist() == [0.7, 0.6]
    assert model.log.lines == ("hello",)


@pytest.mark.behaviour("run-100-000-epochs")
def test_a_long_history_comes_in_pieces_and_has_no_state_until_it_is_whole(
    fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.begin().started(epochs=200).epochs(*range(1, 201), best=9).end("finished")
    whole = followed(RunFollower(fake.run), RunModel())
    assert not whole.reading
    piece = fake.run.events.stat().st_size // 5
    monkeypatch.setattr(follow, "PIECE", piece)
    follower, model, pieces = RunFollower(fake.run), RunModel(), list[News]()
    while (news := follower.poll()) is not None:
        pieces.append(news)
        model.add(news)
        assert model.reading == follower.reading == (len(model.history.epochs) < 200)
        assert model.status.state == ("starting" if model.reading else "finished")
    assert len(pieces) >= 5
    assert max(len(news.events) for news in pieces) < 202 // 2
    assert model.history == whole.history
    fake.say(*(ev.Progress(done=n, total=200, unit="x") for n in range(200)))  # more than a piece, and no old history
    assert not followed(follower, model).reading


def test_an_unreadable_history_is_not_read_for_ever(fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.begin().started(epochs=200).epochs(*range(1, 201)).end("finished")
    monkeypatch.setattr(follow, "PIECE", 4096)
    follower, model = RunFollower(fake.run), RunModel()
    model.add(follower.poll() or News())
    reading = [model.reading]
    record = fake.run.info_file
    kept = record.read_bytes()
    record.write_text("{")
    reading.append(followed(follower, model).reading)
    assert reading == [True, False]
    assert "run.json" in model.problem
    record.write_bytes(kept)
    followed(follower, model)
    assert (model.reading, model.status.state, len(model.history.epochs)) == (False, "finished", 200)
