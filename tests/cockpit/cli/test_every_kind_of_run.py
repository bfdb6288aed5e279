"""Commands on runs that lack something: an honest sentence, the right exit code, and no engine started in vain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.report import Reporter
from engines.runs import launch
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeEngine, FakeRun, stopped_early


def reported(runs: Path) -> str:
    with Reporter("theirs", total_epochs=2) as report:
        report.log(step=0, loss=1.0)
        report.epoch(1, score=0.5, train_loss=1.0)
    return report.path.name


def imported(runs: Path) -> str:
    from cockpit.core.foreign.importing import import_log
    from cockpit.core.foreign.logs import Logs

    (log := runs.parent / "log.csv").write_text("step,loss\n0,1.0\n1,0.5\n")
    (source,) = Logs([log]).sources
    return import_log(source, "").path.name


def of_a_project_that_is_gone(runs: Path) -> str:
    fake = stopped_early(FakeRun(runs))
    fake.run.write_info(msgspec.structs.replace(fake.run.info, project="vanished"))
    fake.run.write_config(fake.run.config.read_text().replace("project: controls", "project: vanished"))
    return fake.id


def without_a_checkpoint(runs: Path) -> str:
    return FakeRun(runs).begin().say(ev.Phase(phase="loading")).end("failed", exit_code=1, error="no data").id


def lost(runs: Path) -> str:
    return FakeRun(runs).begin().started().id


FOREIGN = "{id} is a run of an external program"
OF_FOREIGN = [
    (["thresholds", "--optimize"], 2, f"{FOREIGN}: it has no thresholds to review."),
    (["show", "--config-diff", "default"], 2, f"{FOREIGN}: it has no defaults to compare with."),
    (["export"], 2, f"{FOREIGN}: it has nothing to export."),
    (["resume"], 2, f"{FOREIGN}, and only that program can resume it."),
    (["fork"], 2, "{id} was not trained by the cockpit's engine, so it cannot be forked."),
    (["replay"], 2, "{id} was not trained by the cockpit's engine, so it cannot be replayed."),
    (["weights"], 2, "{id} has no loss weights in its config."),
    (["report"], 1, "{id}: No report: runs of external programs write none."),
    (["pause"], 1, "{id} is finished; only a live run can be steered."),
    (["kill"], 1, "{id} is finished: no process to kill."),
]
GONE = (
    "The project 'vanished' of {id} is not installed here; install its package again, or start the cockpit where it is."
)
NO_PROJECT = "/config.yaml:1: No project is called 'vanished'; installed: agent, controls"
OF_GONE = [
    (["thresholds"], 2, GONE),
    (["show", "--config-diff", "default"], 2, GONE),
    (["export"], 2, GONE),
    (["resume"], 2, "No project is called 'vanished'; installed: agent, controls"),
    (["fork"], 2, NO_PROJECT),
    (["replay"], 2, NO_PROJECT),
]
OF_NONE_KEPT = [
    (["export"], 1, "{id} has nothing to export yet: best.pt is written with its first scored epoch."),
    (["fork"], 1, "{id} has kept no checkpoint to fork."),
    (["replay"], 1, "{id} has no checkpoint for a replay to reach."),
]
WORKS = [["show"], ["show", "--json"], ["advice"], ["advice", "--json"], ["watch", "--once"], ["label", "mine"]]


@pytest.mark.behaviour("command-run-cannot-follow")
@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (reported, OF_FOREIGN), (imported, OF_FOREIGN), (of_a_project_that_is_gone, OF_GONE),
        (without_a_checkpoint, OF_NONE_KEPT), (lost, OF_NONE_KEPT),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_a_sentence_and_starts_nothing(
    cockpit: Cockpit,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], str],
    refused: list[tuple[list[str], int, str]],
) -> None:
    run = make(runs)
    monkeypatch.setattr(launch, "start", lambda run: pytest.fail(f"{run.path} was started"))
    before = sorted(runs.iterdir())
    for (command, *options), code, sentence in refused:
        answer = cockpit(command, run, *options)
        assert (answer.returncode, answer.stdout) == (code, ""), command
        assert answer.stderr.startswith("cockpit: "), command
        assert answer.stderr.count("\n") == 1, answer.stderr
        assert sentence.format(id=run) in answer.stderr
    for command, *options in WORKS:
        named = str(runs / run) if command == "watch" else run
        answer = cockpit(command, named, *options)
        assert answer.returncode == 0, answer.stderr
    assert sorted(runs.iterdir()) == before


@pytest.mark.behaviour("command-run-cannot-follow")
def test_an_order_to_a_run_that_waits_in_the_queue_is_sent_and_not_waited_for(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin(queued=True).say(ev.Phase(phase="queued", detail="number 2 for cpu"))
    with fake.locked():
        answer = cockpit("lr", "last", "0.5x")
    told = f"learning rate × 0.5: sent; {fake.id} waits for its device; it is applied once it starts\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, told, "")
    (order,) = RecordFollower(fake.run.commands, cmd.decoder).poll()
    assert order.attempt == 1


@pytest.mark.parametrize("config", ["project: theirs\n", "project: theirs\nloss_weights: {}\n", ""])
def test_weights_for_a_live_run_that_has_none_are_a_sentence(cockpit: Cockpit, runs: Path, config: str) -> None:
    fake = FakeRun(runs).begin().started()
    fake.run.config.write_text(config)
    with fake.locked(), FakeEngine(fake, lambda command: None) as engine:
        answer = cockpit("weights", "last", "look=0.5")
    assert answer.returncode in (1, 2)
    expected = "has no loss weights in its config" if config else "cannot be read as a config"
    assert expected in answer.stderr
    assert engine.heard == []
