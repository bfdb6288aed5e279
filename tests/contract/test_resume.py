"""What a resume does with changed settings: applied as edits, applied as they are, or ignored with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cockpit.core.run.going_on import look_at_resume
from engines.basics.errors import UserError
from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.config import LoadedConfig, check_config, load_config
from engines.contract.rundir import RunDirectory
from engines.runs import provenance
from engines.runs.launch import prepare_resume, send
from engines.runs.resume import applied_config, flatten, plan_resume
from tests.support.fake_run import FakeRun

TEXT = "project: controls\ndata: {path: /data}\n"


def loaded(*overrides: str) -> LoadedConfig:
    return check_config({"project": "controls", "data": {"path": "/data"}}, "config.yaml", {}, overrides)


def test_flatten_names_every_leaf() -> None:
    assert flatten({"a": 1, "b": {"c": [1], "d": {"e": None}}, "f": {}}) == {"a": 1, "b.c": [1], "b.d.e": None, "f": {}}


def test_nothing_changed_is_no_plan() -> None:
    assert plan_resume(loaded(), loaded(), loaded(), 2) == ([], [])


@pytest.mark.behaviour("resume-says-every-changed")
def test_every_changed_setting_has_its_fate() -> None:
    new = loaded(
        "training.epochs=200", "training.patience=9", "training.lr=1e-4", "loss_weights.look=2", "loss_weights.inv=0",
        "cost.usd_per_hour=1.5", "launch.device=cpu", "training.log_every=5", "output.keep_epochs=3",
        "launch.queue=true", "output.writers=[wandb]", "training.checkpoint_minutes=9", "training.micro_batches=2",
        "training.batch_size=32", "model.num_layers=2", "data.path=/other", "training.seed=1", "launch.threads=3",
    )  # fmt: skip
    changes, edits = plan_resume(loaded(), loaded(), new, 3)
    fates = {change.key: change.applied for change in changes}
    assert fates == {
        "training.epochs": True, "training.patience": True, "training.lr": True, "loss_weights.look": True,
        "loss_weights.inv": True, "cost.usd_per_hour": True, "launch.device": True, "training.log_every": True,
        "output.keep_epochs": True, "launch.queue": True, "output.writers": True, "training.checkpoint_minutes": True,
        "training.micro_batches": True, "training.batch_size": False, "model.num_layers": False, "data.path": False,
        "training.seed": False, "launch.threads": False,
    }  # fmt: skip
    assert {type(edit): edit.attempt for edit in edits} == dict.fromkeys(
        (cmd.SetEpochs, cmd.SetPatience, cmd.SetLrScale, cmd.SetLossWeights), 3
    )
    weights = {head: w for edit in edits if isinstance(edit, cmd.SetLossWeights) for head, w in edit.weights.items()}
    assert weights == {"look": 2.0, "inv": 0.0}
    (scale,) = [edit.scale for edit in edits if isinstance(edit, cmd.SetLrScale)]
    assert scale * loaded().settings.training.lr == pytest.approx(1e-4)
    (epochs,) = [change for change in changes if change.key == "training.epochs"]
    assert epochs.sentence() == "training.epochs: 150 → 200, applied"
    (batch,) = [change for change in changes if change.key == "training.batch_size"]
    assert batch.sentence().startswith("training.batch_size: 64 → 32, ignored because the checkpoint was made with")


def test_the_record_takes_free_settings_and_leaves_edited_ones_to_their_edits() -> None:
    edited = ("training.epochs=200", "training.patience=9", "training.lr=1e-4", "loss_weights.look=2")
    old, new = loaded(), loaded("cost.usd_per_hour=1.5", "model.num_layers=2", *edited)
    changes, _ = plan_resume(old, old, new, 2)
    tree = applied_config(old, changes)
    assert tree == loaded("cost.usd_per_hour=1.5").settings.model_dump(mode="json")
    assert check_config(tree, "again", {}, ()).settings.cost.usd_per_hour == 1.5


@pytest.fixture
def stopped(tmp_path: Path) -> FakeRun:
    fake = FakeRun(tmp_path)
    fake.run.config.write_text(loaded("training.epochs=4").dump())
    return fake.begin().started().epochs(1, 2).end("stopped")


def resumed(run: RunDirectory, overrides: Sequence[str] = ()) -> list[str]:
    """Resume it as its supervisor would; the sentences that a person reads."""
    changes, sentences = prepare_resume(run, overrides)
    changes.carry_out(run)
    return sentences


def sent(fake: FakeRun) -> list[cmd.Command]:
    follower: RecordFollower[cmd.Command] = RecordFollower(fake.run.commands, cmd.decoder)
    return follower.poll()


def test_a_resume_sends_its_edits_to_the_attempt_to_come(stopped: FakeRun) -> None:
    sentences = resumed(stopped.run, ["training.epochs=6", "cost.usd_per_hour=2", "model.nhead=4"])
    assert len(sentences) == 3
    (edit,) = sent(stopped)
    assert isinstance(edit, cmd.SetEpochs)
    assert (edit.attempt, edit.epochs) == (2, 6)
    recorded = load_config(stopped.run.config).settings
    assert (recorded.cost.usd_per_hour, recorded.training.epochs, recorded.model.model_dump()["nhead"]) == (2, 4, 8)


@pytest.mark.behaviour("command-stop-machine-end")
def test_a_command_that_a_run_brings_along_is_told(stopped: FakeRun) -> None:
    command = "cost.on_finish=stop-pod --now"
    assert resumed(stopped.run, [command]) == [
        "cost.on_finish: None → stop-pod --now, applied",
        "when the run ends and nothing else runs here, this runs: stop-pod --now",
    ]
    assert resumed(stopped.run) == ["when the run ends and nothing else runs here, this runs: stop-pod --now"]
    lines = ("cost.on_finish", "stop-pod --now", "runs on this machine when the run ends")
    assert lines in look_at_resume(stopped.run, []).lines
    assert resumed(stopped.run, ["cost.on_finish=null"]) == ["cost.on_finish: stop-pod --now → None, applied"]
    assert lines not in look_at_resume(stopped.run, []).lines


def test_an_edit_that_was_not_answered_is_sent_again_and_told(tmp_path: Path) -> None:
    """Heard or not; what an attempt before the last one did not answer is over."""
    fake = FakeRun(tmp_path)
    fake.run.config.write_text(loaded("training.epochs=4").dump())
    heard, unheard = cmd.SetLrScale(attempt=2, at_step=31, scale=0.5), cmd.SetPatience(attempt=2, patience=7)
    older = cmd.SetEpochs(attempt=1, epochs=9)
    for order in (older, heard, unheard, cmd.Pause(attempt=2)):
        send(fake.run, order)
    fake.begin().started().epochs(1, 2).end("failed")
    fake.begin().started(20).say(ev.CommandAnswer(command=heard, state="seen", step=21)).end("failed")
    fate = "sent again: the last attempt ended before applying it"
    lines = [("order", "learning rate × 0.5", fate), ("order", "patience 7", fate)]
    assert [line for line in look_at_resume(fake.run, []).lines if line[0] == "order"] == lines
    assert [line for line in look_at_resume(fake.run, ["training.patience=5"]).lines if line[0] == "order"] == lines[:1]
    sentences = resumed(fake.run)
    assert [sentence.split(":")[0] for sentence in sentences] == ["learning rate × 0.5", "patience 7"]
    scale, patience = sent(fake)[4:]
    assert (scale.attempt, scale.at_step, patience.attempt, patience.at_step) == (3, 31, 3, None)
    assert not {scale.id, patience.id} & {heard.id, unheard.id}


def test_a_resume_without_changes_touches_nothing(stopped: FakeRun) -> None:
    before = stopped.run.config.read_bytes()
    assert resumed(stopped.run) == []
    assert stopped.run.config.read_bytes() == before
    assert sent(stopped) == []


@pytest.mark.behaviour("says-config-edited-hand")
def test_a_config_edited_by_hand_has_the_fates_of_settings(stopped: FakeRun) -> None:
    """Nothing of it comes into force unseen: not here, not in a replay."""
    stopped.run.write_config(loaded("training.epochs=4").dump())
    text = stopped.run.config.read_text()
    by_hand = {"batch_size: 64": "batch_size: 32", "epochs: 4": "epochs: 5", "log_every: 10": "log_every: 7"}
    for old, new in by_hand.items():
        assert old in text
        text = text.replace(old, new)
    stopped.run.config.write_text(text)
    sentences = resumed(stopped.run, ["training.epochs=6"])
    assert [sentence.partition(" because")[0] for sentence in sentences] == [
        "training.batch_size: 64 → 32, ignored",
        "training.epochs: 4 → 6, applied",
        "training.log_every: 10 → 7, applied",
    ]
    for path in (stopped.run.config, stopped.run.recorded_config):
        training = load_config(path).settings.training
        assert (training.batch_size, training.epochs, training.log_every) == (64, 4, 7)
    assert resumed(stopped.run) == []


@pytest.mark.behaviour("run-ended-itself-trained")
@pytest.mark.parametrize("reason", ["finished", "early-stopped"])
def test_a_run_that_is_done_needs_more_to_do(stopped: FakeRun, reason: str) -> None:
    stopped.end(reason)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=f"is {reason} at epoch 2; give it more epochs or patience") as refused:
        resumed(stopped.run, ["cost.usd_per_hour=2"])
    assert refused.value.exit_code == 2
    assert resumed(stopped.run, ["training.epochs=9"]) == ["training.epochs: 4 → 9, applied"]


def test_a_task_is_not_resumed(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, kind="task").begin().end("stopped")
    with pytest.raises(UserError, match="is a task, and only trainings can be resumed"):
        resumed(fake.run)


def test_a_bad_override_changes_nothing(stopped: FakeRun) -> None:
    with pytest.raises(UserError, match=r"training\.epohcs is not a known key"):
        resumed(stopped.run, ["training.epohcs=9", "cost.usd_per_hour=2"])
    assert load_config(stopped.run.config).settings.cost.usd_per_hour == 0
    assert sent(stopped) == []


@pytest.mark.behaviour("engine-would-refuse-too")
@pytest.mark.parametrize(
    ("inside", "wanted", "reason"),
    [
        (False, ["training.epochs=1"], "epochs 1: the run cannot end before epoch 2 is done, got 1"),
        (True, ["training.epochs=2"], "epochs 2: the run cannot end before epoch 3 is done, got 2"),
        (False, ["training.lr=1e30"], "learning rate × 2e\\+33: the scale must be a number from 1e-06 to 1000"),
        (False, ["loss_weights.look=1e39"], "--set loss_weights.look=1e39: loss_weights: the weight of look must be"),
    ],
)
def test_what_the_engine_would_refuse_is_not_called_applied(
    stopped: FakeRun, inside: bool, wanted: list[str], reason: str
) -> None:
    step, epoch = (25, 2) if inside else (20, 2)
    stopped.say(ev.Checkpoint(step=step, epoch=epoch, files=["last.pt"], size=1, seconds=0.1))
    before = stopped.run.config.read_bytes()
    with pytest.raises(UserError, match=reason):
        resumed(stopped.run, [*wanted, "cost.usd_per_hour=2"])
    assert (stopped.run.config.read_bytes(), sent(stopped)) == (before, [])


@pytest.mark.behaviour("data-moved-volume-mounted")
def test_data_that_was_moved_is_the_run_s_own_and_other_data_is_not(
    stopped: FakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A volume that is mounted elsewhere must not end a run of days."""
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    for folder, content in ((old, b"one"), (other, b"two")):
        folder.mkdir()
        (folder / "a.npz").write_bytes(content)
    before = loaded("training.epochs=4", f"data.path={old}")
    stopped.run.write_config(before.dump())
    [said] = resumed(stopped.run, [f"data.path={other}"])
    assert "ignored because the data the run was trained on is not recorded" in said
    provenance.record(stopped.run, 1, provenance.current(before))
    old.rename(new)
    [said, *_] = resumed(stopped.run, [f"data.path={other}"])
    assert "ignored because it is not the data the run was trained on: 1 of 1 files changed (a.npz)" in said
    assert load_config(stopped.run.config).settings.data.path == str(old)
    monkeypatch.chdir(tmp_path)
    assert resumed(stopped.run, ["data.path=new"]) == [f"data.path: {old} → {new}, applied"]
    assert load_config(stopped.run.config).settings.data.path == str(new)


@pytest.mark.behaviour("engine-would-refuse-too")
def test_weights_go_out_as_one_edit_so_that_none_is_applied_without_the_others(stopped: FakeRun) -> None:
    resumed(stopped.run, ["loss_weights.look=0", "loss_weights.inv=2", "training.epochs=6"])
    weights = [edit.weights for edit in sent(stopped) if isinstance(edit, cmd.SetLossWeights)]
    assert weights == [{"look": 0.0, "inv": 2.0}]


@pytest.mark.behaviour("resume-says-every-changed")
def test_what_is_in_force_counts_the_live_edits(stopped: FakeRun) -> None:
    """After a live edit to 9 epochs and half the rate, asking for the recorded values is a change back."""
    for command in (cmd.SetEpochs(attempt=1, epochs=9), cmd.SetLrScale(attempt=1, scale=0.5)):
        stopped.say(ev.CommandAnswer(command=command, state="applied", step=3))
    assert resumed(stopped.run) == []
    assert resumed(stopped.run, ["training.epochs=4", "training.lr=5e-4"]) == [
        "training.epochs: 9 → 4, applied",
        "training.lr: 0.00025 → 0.0005, applied",
    ]
    epochs, rate = sent(stopped)
    assert isinstance(epochs, cmd.SetEpochs)
    assert isinstance(rate, cmd.SetLrScale)
    assert (epochs.epochs, rate.scale) == (4, 1.0)
