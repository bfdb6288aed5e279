"""A fork goes on from a kept checkpoint as its parent would have, unless something is changed; its parent stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.basics.files import replace_by_link
from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract.config import load_config
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory
from engines.runs import launch
from engines.runs.fork import choose_point, fork_points, forkable, make_fork, plan_fork, prepare_fork
from engines.runs.replay import prepare_replay
from engines.runs.saved import read_saved
from tests.engines.conftest import LiveRun, effective_table, prepare_example, tensors
from tests.support.example_project import ExampleProject

NewRun = Callable[..., LiveRun]
SETTINGS = (
    "training.batch_size=16", "training.epochs=4", "training.stages=[]", "training.checkpoint_minutes=100",
    "output.keep_epochs=1", "training.patience=100",
)  # fmt: skip
EPOCH = 2048 // 16


def ended(run: RunDirectory) -> LiveRun:
    live = LiveRun(run)
    assert live.here() == "finished", live.log()
    return live


def trained_state(run: RunDirectory) -> dict[str, torch.Tensor]:
    """Weights, moments and random state at the end."""
    return {place: tensor for place, tensor in tensors(run.last).items() if not place.startswith("/state")}


def assert_equal(one: RunDirectory, other: RunDirectory) -> None:
    ours, theirs = trained_state(one), trained_state(other)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []


def files_of(run: RunDirectory) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(run.path.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def trained(example: ExampleProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    """Four epochs, with one edit inside the first epoch and another inside the third."""
    with pytest.MonkeyPatch.context() as patch:
        live = LiveRun(prepare_example(example, patch, tmp_path_factory.mktemp("fork"), *SETTINGS))
        live.send(cmd.SetLossWeights(attempt=1, at_step=50, weights={"radius": 0.7}))
        live.send(cmd.SetLrScale(attempt=1, at_step=2 * EPOCH + 20, scale=0.5))
        yield ended(live.run)


@pytest.fixture
def parent(trained: LiveRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveRun:
    """A copy of that run, in a runs folder of the test's own."""
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    return LiveRun(RunDirectory(shutil.copytree(trained.run.path, tmp_path / trained.run.info.id)))


def test_forks_from_epoch_2(parent: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal to its parent where the same is done; else not. The later edit is not applied by itself."""
    before = files_of(parent.run)
    points = fork_points(parent.run, parent.reader.poll())
    kept = {name: point.epoch for point in points for name in point.names if name != "best.pt"}
    assert kept == {"last.pt": 4, "epoch_004.pt": 4, "epoch_003.pt": 3, "epoch_002.pt": 2, "epoch_001.pt": 1}
    plain, told = prepare_fork(parent.run, checkpoint="2", label="again")
    assert told == []
    info = plain.info
    assert (info.parent, info.fork_step, info.label) == (parent.run.info.id, 2 * EPOCH, "again")
    changed, told = prepare_fork(parent.run, ["training.lr=1e-3", "model.width=8", "cost.on_finish=x"], checkpoint="2")
    assert [line.split(", ")[1][:16] for line in told[:3]] == ["applied", "ignored because ", "applied"]
    assert told[3] == "when the run ends and nothing else runs here, this runs: x"
    same = LiveRun(plain)
    same.send(cmd.SetLrScale(attempt=1, at_step=2 * EPOCH + 20, scale=0.5))
    ended(plain)
    assert_equal(plain, parent.run)
    same.reader.poll()
    begun = same.reader.history.started
    assert begun is not None
    assert (begun.parent, begun.resumed_step) == (parent.run.info.id, 2 * EPOCH)
    rows = {row["epoch"]: row for row in effective_table(parent.run)}
    best = max(number for number, row in rows.items() if row["best"])  # what best.pt of its parent holds
    assert (begun.best_epoch, begun.best_score) == ((best, rows[best]["score"]) if best <= 2 else (0, None))
    assert effective_table(plain) == effective_table(parent.run)[2:]

    ended(changed)
    rates = [row["lr"] for row in effective_table(changed)]
    old = load_config(parent.run.config).settings.training
    assert not torch.equal(
        torch.cat([t.flatten() for p, t in trained_state(changed).items() if p.startswith("/model")]),
        torch.cat([t.flatten() for p, t in trained_state(parent.run).items() if p.startswith("/model")]),
    )
    parents = [row["lr"] for row in effective_table(parent.run)]
    assert rates[0] == pytest.approx(parents[2] / 0.5 * 1e-3 / old.lr)
    assert [row["weights"]["radius"] for row in effective_table(changed)] == [0.7, 0.7]
    assert files_of(parent.run) == before

    again = ended(prepare_replay(changed))
    assert load_config(again.run.config).settings.cost.on_finish is None
    assert_equal(again.run, changed)


def test_a_fork_outlives_its_parent_and_resumes_exactly(parent: LiveRun) -> None:
    straight, _ = prepare_fork(parent.run, ["training.lr=3e-3", "training.weight_decay=0.1"], checkpoint="2")
    killed, _ = prepare_fork(parent.run, ["training.lr=3e-3", "training.weight_decay=0.1"], checkpoint="2")
    shutil.rmtree(parent.run.path)
    ended(straight)
    assert torch.load(straight.last, weights_only=True)["optimizer"]["param_groups"][0]["weight_decay"] == 0.1

    live = LiveRun(killed)
    live.killed_here(40)  # before its first own checkpoint
    assert live.resume_here() == "finished", live.log()
    assert_equal(killed, straight)
    assert effective_table(killed) == effective_table(straight)


def test_what_a_fork_was_made_with_outlives_a_failed_start(parent: LiveRun) -> None:
    fork, _ = prepare_fork(parent.run, ["training.lr=3e-3"], checkpoint="2")
    first = RecordFollower(fork.commands, cmd.decoder).poll()
    end = End(reason="failed", time=2.0, exit_code=1)
    fork.write_attempt(Attempt(number=1, started=1.0, supervisor=ProcessMark(1, 0.0), ended=end))
    changes, _ = launch.prepare_resume(fork)
    changes.carry_out(fork)
    again = RecordFollower(fork.commands, cmd.decoder).poll()[len(first) :]
    scale = 3e-3 / load_config(fork.config).settings.training.lr
    wanted = [cmd.SetLossWeights(attempt=2, weights={"radius": 0.7}), cmd.SetLrScale(attempt=2, scale=scale)]
    assert [msgspec.structs.replace(edit, id="", time=0.0) for edit in again] == [
        msgspec.structs.replace(edit, id="", time=0.0) for edit in wanted
    ]


def test_a_live_run_is_forked_from_its_last_checkpoint(new_run: NewRun) -> None:
    live = new_run(*SETTINGS)
    pause = cmd.Pause(attempt=1, at_step=EPOCH + 30)
    save = cmd.SaveCheckpoint(attempt=1, at_step=EPOCH + 30)
    for command in (save, pause):
        live.send(command)
    live.start()
    live.wait_answer(pause, "applied")
    fork, told = prepare_fork(live.run, ["training.batch_size=32", "training.min_lr=1e-5"])
    assert fork.info.fork_step == EPOCH + 30
    assert told[0].startswith("training.batch_size: 16 → 32, ignored because the checkpoint is inside epoch 2")
    assert told[1] == "training.min_lr: 1e-06 → 1e-05, applied"
    with pytest.raises(
        UserError, match=r"keeps no checkpoint of epoch 3; it has .*last, and the ends of the epochs 1 "
    ):
        prepare_fork(live.run, checkpoint="3")
    other, told = prepare_fork(live.run, ["training.batch_size=32"], checkpoint="1")
    assert told[0] == "training.batch_size: 16 → 32, applied"
    live.send(cmd.Continue(attempt=1))
    ended(other)
    assert [row["step"] for row in effective_table(other)] == [EPOCH + n * EPOCH // 2 for n in (1, 2, 3)]
    assert live.wait_end() == "finished"
    with pytest.raises(UserError, match="has 4 of 4 epochs done: give the fork more epochs"):
        prepare_fork(live.run)


@pytest.mark.behaviour("fork-run-just-saving")
@pytest.mark.parametrize("told", [True, False])
def test_a_run_that_saves_while_it_is_forked_gives_weights_and_settings_of_one_step(
    parent: LiveRun, told: bool
) -> None:
    """`last` is epoch 2 when it is looked at and epoch 3 when it is taken, with half the rate set in between; or it is
    epoch 3 already, and its event is not there yet."""
    run, lines = parent.run, parent.run.events.read_bytes().splitlines(keepends=True)
    second = next(
        n for n, line in enumerate(lines) if b'"type":"checkpoint"' in line and b'"step":%d' % (2 * EPOCH) in line
    )
    run.events.write_bytes(b"".join(lines[: second + 1]))
    kept = {epoch: (run.checkpoints / f"epoch_00{epoch}.pt").rename(run.path / f"{epoch}.pt") for epoch in (2, 3)}
    run.best.unlink()
    replace_by_link(kept[2 if told else 3], run.last)
    events = forkable(run)
    point = choose_point(run, fork_points(run, events))
    plan = plan_fork(run, point, events, ["training.weight_decay=1e-3"])
    assert (point.step, plan.saved.step) == (2 * EPOCH, (2 if told else 3) * EPOCH)
    replace_by_link(kept[3], run.last)
    run.events.write_bytes(b"".join(lines))
    fork, plan = make_fork(plan)
    assert fork.info.fork_step == plan.saved.step == 3 * EPOCH
    set_anew = RecordFollower(fork.commands, cmd.decoder).poll()
    assert [(type(edit), edit.attempt) for edit in set_anew] == [(cmd.SetLossWeights, 1), (cmd.SetLrScale, 1)]
    assert (set_anew[0].weights, set_anew[1].scale) == ({"radius": 0.7}, 0.5)  # type: ignore[union-attr]
    assert load_config(fork.config).settings.training.weight_decay == 1e-3
    assert ended(fork).run.info.fork_step == 3 * EPOCH
    assert [row["lr"] for row in effective_table(fork)] == [row["lr"] for row in effective_table(run)[3:]]


def test_what_a_checkpoint_says_of_itself_is_what_torch_reads(parent: LiveRun, tmp_path: Path) -> None:
    for file in parent.run.checkpoints.glob("*.pt"):
        state = torch.load(file, weights_only=True)["state"]
        saved = read_saved(file)
        assert {name: getattr(saved, name) for name in ("step", "epoch")} == {n: state[n] for n in ("step", "epoch")}
        assert {name: getattr(saved, name) for name in state["live"]} == state["live"]
        assert not saved.inside
    whole = parent.run.last.read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    torch.save({"state": Attempt}, tmp_path / "foreign.pt")
    for name in ("cut.pt", "foreign.pt", "absent.pt"):
        with pytest.raises(DataError, match=f"{name} is not a whole checkpoint of this program"):
            read_saved(tmp_path / name)


def test_a_fork_without_a_best_checkpoint_of_its_time_finds_its_own(parent: LiveRun) -> None:
    points = fork_points(parent.run, parent.reader.poll())
    best = next(point for point in points if "best.pt" in point.names)
    assert best.epoch > 1
    fork, _ = prepare_fork(parent.run, checkpoint="1")
    assert not fork.best.exists()
    ended(fork)
    assert effective_table(fork)[0]["best"]
    assert fork.best.is_file()


def test_a_fork_where_there_is_no_room_leaves_nothing(parent: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.basics import files

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_by_link", full)
    before = sorted(parent.run.path.parent.iterdir())
    with pytest.raises(UserError, match=r"cannot be copied for a fork \(No space left on device\)"):
        prepare_fork(parent.run, checkpoint="2")
    assert sorted(parent.run.path.parent.iterdir()) == before
