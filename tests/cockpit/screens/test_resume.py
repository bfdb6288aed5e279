"""The dialogs before a resume and a fork: old against new, what becomes of it, and the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.core.run import going_on
from cockpit.screens.resume import ForkScreen, ResumeScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from engines.contract import commands as cmd
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch, provenance
from engines.runs.provenance import Provenance
from engines.runs.resumption import Resumption
from engines.runs.trust import is_from_elsewhere
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import STEPS_PER_EPOCH, FakeRun, stopped_early

Make = Callable[..., CockpitApp]


@pytest.fixture
def stopped(fake: FakeRun) -> FakeRun:
    return stopped_early(fake)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunDirectory]:
    """The runs that were started."""
    runs: list[RunDirectory] = []

    def start(run: RunDirectory, changes: Resumption | None = None) -> int:
        runs.append(run)
        if changes is not None:
            changes.carry_out(run)
        return 1

    monkeypatch.setattr(launch, "start", start)
    return runs


async def type_over(pilot: Pilot[None], field: str, value: str) -> None:
    pilot.app.screen.query_one(f"#{field}", Input).focus()
    await pilot.press("home", "shift+end", "delete", *value)


async def test_an_unchanged_run_resumes_by_one_more_enter(
    cockpit: Make, stopped: FakeRun, started: list[RunDirectory]
) -> None:
    before = stopped.run.config.read_bytes()
    provenance.record(stopped.run, 1, Provenance(facts={"torch": "1.13.0"}))
    async with cockpit(open_run=stopped.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResumeScreen) and "edited live, kept" in text(pilot))
        assert "training.patience" in text(pilot)
        assert "25 → 7" in text(pilot)
        await until(pilot, lambda: "▲ changed since then: torch: 1.13.0 → " in text(pilot))  # and keeps nobody from it
        await pilot.press("enter")
        await until(pilot, lambda: started)
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
    assert [run.path for run in started] == [stopped.run.path]
    assert stopped.run.config.read_bytes() == before
    assert commands_of(stopped) == []


@pytest.mark.behaviour("run-from-elsewhere-asks")
async def test_a_run_from_elsewhere_shows_what_it_runs_and_asks_again(
    cockpit: Make, stopped: FakeRun, started: list[RunDirectory]
) -> None:
    stopped.run.write_info(msgspec.structs.replace(stopped.run.info, seal="", made_by="mallory@far"))
    async with cockpit(open_run=stopped.run).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResumeScreen) and "edited live, kept" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "was made elsewhere, by mallory@far" in text(pilot))
        assert "it starts the module engines.train" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert is_from_elsewhere(stopped.run.info)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResumeScreen) and "edited live, kept" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "enter again if you trust it" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: started)
    assert not is_from_elsewhere(stopped.run.info)


@pytest.mark.behaviour("resume-says-every-changed")
async def test_every_change_of_a_resume_says_what_becomes_of_it(
    cockpit: Make, stopped: FakeRun, started: list[RunDirectory]
) -> None:
    async with cockpit().run_test(size=(110, 30), notifications=True) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("r")
        await until(pilot, lambda: "edited live, kept" in text(pilot))
        await pilot.press("9")  # in place of what stood there
        await until(pilot, lambda: "4 → 9" in text(pilot))
        await type_over(pilot, "more", "model.num_layers=2 training.log_every=5")
        await until(pilot, lambda: "✖ ignored because the checkpoint" in text(pilot) and "✓ applied" in text(pilot))
        await type_over(pilot, "lr", "fast")
        await until(
            pilot, lambda: "✖ --set training.lr=fast: training.lr: input should be a valid number" in text(pilot)
        )
        await pilot.press("enter")
        await pilot.pause()
        assert started == []
        await type_over(pilot, "lr", "1e-3")
        await until(pilot, lambda: "0.0005 → 0.001" in text(pilot) and "valid number" not in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: started)
    epochs, rate = commands_of(stopped)
    assert isinstance(epochs, cmd.SetEpochs)
    assert isinstance(rate, cmd.SetLrScale)
    assert (epochs.epochs, rate.scale, rate.attempt) == (9, 2.0, 2)
    recorded = load_config(stopped.run.config).settings
    assert (recorded.training.log_every, recorded.training.epochs) == (5, 4)


@pytest.mark.behaviour("run-ended-itself-trained")
async def test_a_finished_run_goes_on_when_it_is_given_more_to_do(
    cockpit: Make, stopped: FakeRun, started: list[RunDirectory]
) -> None:
    stopped.epochs(3, 4).end("finished")
    async with cockpit(open_run=stopped.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("r")
        await until(pilot, lambda: "is finished at epoch 4; give it more" in text(pilot))
        await pilot.press("3", "enter")  # not more than it has done
        await until(pilot, lambda: "4 → 3" in text(pilot) and "give it more" in text(pilot))
        await type_over(pilot, "epochs", "6")
        await until(pilot, lambda: "4 → 6" in text(pilot) and "give it more" not in text(pilot))
        assert started == []
        await pilot.press("enter")
        await until(pilot, lambda: started)
    [more] = commands_of(stopped)
    assert isinstance(more, cmd.SetEpochs)
    assert (more.epochs, more.attempt) == (6, 2)


async def test_leaving_the_dialog_starts_nothing(cockpit: Make, stopped: FakeRun, started: list[RunDirectory]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        for key in "rf":
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, ResumeScreen))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
    assert started == []
    assert len(list(stopped.run.path.parent.iterdir())) == 1


async def test_a_fork_from_the_first_epoch(cockpit: Make, stopped: FakeRun, started: list[RunDirectory]) -> None:
    """The edit was made after it, so the patience is the config's; the fork's screen is shown."""
    async with cockpit(open_run=stopped.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("f")
        await until(pilot, lambda: "epoch_002, last" in text(pilot) and "edited live, kept" in text(pilot))
        assert "best, epoch_001" in text(pilot)
        assert "score 0.200" in text(pilot)
        assert "2.0 MB" in text(pilot)
        await pilot.press("down")
        await until(pilot, lambda: "no settings changed" in text(pilot))
        await type_over(pilot, "label", "other seed")
        await type_over(pilot, "more", "training.seed=1")
        await until(pilot, lambda: "42 → 1" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: started)
        (child,) = started
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and pilot.app.screen.run.path == child.path)
    info = child.info
    assert (info.parent, info.fork_step, info.label) == (stopped.id, STEPS_PER_EPOCH, "other seed")
    settings = load_config(child.config).settings.training
    assert (settings.seed, settings.patience, settings.epochs) == (1, 25, 4)
    assert child.fork.read_bytes() == child.best.read_bytes() == stopped.run.best.read_bytes()
    assert not child.commands.exists()


async def test_a_fork_with_nothing_to_do_or_no_checkpoint_says_so(
    cockpit: Make, stopped: FakeRun, folder: Path, started: list[RunDirectory]
) -> None:
    async with cockpit(open_run=stopped.run).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("f")
        await until(pilot, lambda: "epoch_002, last" in text(pilot) and "edited live, kept" in text(pilot))
        await type_over(pilot, "epochs", "2")
        await until(pilot, lambda: "has 2 of 2 epochs done: give the fork more epochs" in text(pilot))
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ForkScreen)
        await pilot.press("escape")
        for file in stopped.run.checkpoints.iterdir():
            file.unlink()
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        await pilot.press("f")
        await until(pilot, lambda: "has no checkpoint to fork yet" in text(pilot))
        await pilot.press("enter")
        await pilot.pause()
    assert started == []


def test_only_what_was_typed_is_a_change() -> None:
    usual = {"epochs": "4", "patience": "7", "lr": "0.0005"}
    typed = {"epochs": "4", "patience": " 9 ", "lr": "0.0005"}
    assert going_on.overrides_of(typed, usual, "data.path='/a b' launch.queue=true") == [
        "training.patience=9", "data.path=/a b", "launch.queue=true",
    ]  # fmt: skip
