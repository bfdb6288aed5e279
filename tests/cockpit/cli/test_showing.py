"""ls, show, tail and report over fabricated runs."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from engines.contract import commands as cmd
from engines.contract import events as ev
from tests.cockpit.cli.conftest import COMMAND, Cockpit, in_a_process
from tests.support.fake_run import FakeRun, epoch

HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u202egnp.exe"


def table(text: str) -> list[list[str]]:
    """The rows of an epoch table by its cells, header and rule apart."""
    return [line.split() for line in text.splitlines()[2:]]


def test_no_runs_is_said_and_is_an_empty_list(cockpit: Cockpit, runs: Path) -> None:
    plain = cockpit("ls")
    assert (plain.returncode, plain.stdout) == (0, "")
    assert f"no runs in {runs}" in plain.stderr
    assert json.loads(cockpit("ls", "--json").stdout) == []


def test_runs_are_listed_newest_first_whatever_their_shape(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs, "controls-20261127-100000-oak", created=1.0).begin().started().epochs(1, 2, best=2).end("finished")
    FakeRun(runs, "controls-20261127-110000-elm", created=2.0, label="mine").begin().started()
    FakeRun(runs, "controls-20261127-120000-fir", created=3.0, kind="task").begin().say(
        ev.Progress(done=3, total=12, unit="sessions")
    ).end("stopped")
    listed = json.loads(cockpit("ls", "--json").stdout)
    assert [(run["id"][-3:], run["state"], run["kind"]) for run in listed] == [
        ("fir", "stopped", "task"),
        ("elm", "lost", "training"),
        ("oak", "finished", "training"),
    ]
    assert (listed[0]["done"], listed[0]["total"]) == (3, 12)
    assert (listed[2]["epoch"], listed[2]["epochs"], listed[2]["best_score"]) == (2, 4, 0.2)
    lines = cockpit("ls").stdout.splitlines()
    assert [line.split()[0][-3:] for line in lines[2:]] == ["fir", "elm", "oak"]
    assert "2/4" in lines[4]
    assert "0.200" in lines[4]
    assert lines[3].endswith("mine")


@pytest.mark.behaviour("fork-has-parents-best-to-beat")
def test_a_fork_that_has_not_beaten_its_parent_shows_what_it_has_to_beat(cockpit: Cockpit, runs: Path) -> None:
    fork = FakeRun(runs, "controls-20261127-100000-oak", created=1.0, label="fork of elm").begin()
    fork.run.write_info(msgspec.structs.replace(fork.run.info, parent="controls-20261126-100000-elm", fork_step=20))
    fork.say(
        ev.RunStarted(
            project="controls", device="cpu", epochs=30, steps_per_epoch=10, columns=[], stages=[], patience=10,
            resumed_step=200, resumed_epoch=20, parent="controls-20261126-100000-elm", best_score=0.929, best_epoch=20,
        )
    ).epochs(21, 22).end("stopped")  # fmt: skip
    (listed,) = json.loads(cockpit("ls", "--json").stdout)
    assert listed["best_score"] == 0.929
    assert "best 0.929 (parent, ep 20) · patience 2/10" in cockpit("ls").stdout
    assert "0.929 in epoch 20 of its parent" in cockpit("show", "oak").stdout


def test_thousands_of_epochs_are_told_as_on_the_screen(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs).begin().started(epochs=100_000).epochs(12_345).end("stopped")
    assert " 12,345/100,000 " in cockpit("ls").stdout


def test_a_damaged_run_is_listed_as_broken_and_harms_no_other(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs, "controls-20261127-100000-oak").begin().started().end("finished")
    FakeRun(runs, "controls-20261127-110000-elm").run.info_file.write_text("{")
    broken_attempt = FakeRun(runs, "controls-20261127-120000-fir").begin().started()
    (broken_attempt.run.attempts / "1.json").write_text("{")
    answer = cockpit("ls", "--json")
    assert answer.returncode == 0
    states = {run["id"][-3:]: run["state"] for run in json.loads(answer.stdout)}
    assert states == {"oak": "finished", "elm": "broken", "fir": "broken"}
    shown = cockpit("show", "controls-20261127-11")
    assert shown.returncode == 1
    assert "cannot be read as a run's record" in shown.stderr


def test_show_tells_attempts_edits_and_alerts(cockpit: Cockpit, runs: Path) -> None:
    edit = cmd.SetLossWeights(attempt=1, weights={"look": 0.25})
    fake = FakeRun(runs, label="mine").begin().started().epochs(1, 2, 3, best=2)
    alert = ev.Alert(code="x", level="error", text="the loss is nan", step=14)
    late = cmd.SetPatience(attempt=1, patience=9)
    fake.say(ev.CommandAnswer(command=edit, state="applied", step=12), alert)
    fake.say(ev.CommandAnswer(command=late, state="refused", step=20, reason="the run is stopping"))
    fake.say(ev.Checkpoint(step=30, epoch=3, files=["last.pt"], size=14_200_000, seconds=0.1))
    fake.end("failed", exit_code=None, signal="SIGKILL").begin().started(resumed_step=20).end("stopped", error="saved")
    facts = json.loads(cockpit("show", "last", "--json").stdout)
    assert (facts["state"], facts["detail"], facts["label"]) == ("stopped", "saved", "mine")
    assert (facts["epoch"], facts["epochs"], facts["step"], facts["best_epoch"]) == (2, 4, 20, 2)
    assert facts["resumed_from_steps"] == [20]
    assert facts["weights"] == {"action": 1.0, "look": 0.25}  # the newest epoch in force has 0.5
    assert [attempt["reason"] for attempt in facts["attempts"]] == ["failed", "stopped"]
    assert facts["attempts"][0]["signal"] == "SIGKILL"
    assert facts["edits"] == [{"step": 12, "attempt": 1, "what": "loss weights look 0.25"}]
    refused = {"step": 20, "attempt": 1, "what": "patience 9", "reason": "the run is stopping"}
    assert facts["refused"] == [refused]
    assert facts["checkpoint"] == {"step": 30, "files": ["last.pt"], "size": 14_200_000}
    text = cockpit("show", "last").stdout
    for word in (
        "stopped: saved",
        "2 of 4, step 20",
        "0.200 in epoch 2",
        "14.2 MB",
        "loss weights look 0.25",
        "action 1, look 0.25",
        "killed by SIGKILL after step 0",
        "the loss is nan",
        "the run is stopping",
        "UTC",
    ):
        assert word in text


def test_an_attempt_that_nobody_ended_is_lost_unless_it_goes_on(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().epochs(1).begin().started(resumed_step=10)
    lost = r"^ +{} .*  lost +no end recorded \(machine rebooted\?\)$"
    with fake.locked():
        text = cockpit("show", "last").stdout
    assert re.search(lost.format(1), text, re.MULTILINE)
    assert not re.search(lost.format(2), text, re.MULTILINE)
    assert re.search(lost.format(2), cockpit("show", "last").stdout, re.MULTILINE)


def test_a_run_in_its_first_epoch_has_done_none(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs).begin().started()
    assert re.search(r"^epoch +0 of 4$", cockpit("show", "last").stdout, re.MULTILINE)


def test_damaged_lines_are_told(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().epochs(1)
    with open(fake.run.events, "ab") as file:
        file.write(b"garbage\n\xff\n")
    fake.epochs(2).end("finished")
    assert json.loads(cockpit("show", "last", "--json").stdout)["damaged_lines"] == 2
    assert "2 damaged lines in events.jsonl" in cockpit("show", "last").stdout
    assert [row[0] for row in table(cockpit("tail", "last").stdout)] == ["1", "2"]


def test_tail_prints_the_rows_in_force_and_ends_with_the_code_of_the_run(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().epochs(1, 2, 3, score=0.9, best=3).end("stopped")
    fake.begin().started(resumed_step=10).epochs(2, 3, best=2).end("finished")
    answer = cockpit("tail", "last")
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[0].split() == ["Ep", "TrLoss", "Act", "VlF1", "Score", "LR"]
    assert table(answer.stdout) == [
        ["1", "1.000", "0.500", "0.250", "0.900", "5.0e-4"],
        ["2", "0.500", "0.500", "0.250", "0.200", "5.0e-4", "*"],
        ["3", "0.333", "0.500", "0.250", "0.300", "5.0e-4"],
    ]
    assert f"{fake.id} finished; best score 0.200 in epoch 2" in answer.stderr


@pytest.mark.behaviour("state-shown-process-exit")
@pytest.mark.parametrize(
    ("reason", "code"), [("finished", 0), ("early-stopped", 0), ("stopped", 3), ("out-of-budget", 3), ("failed", 1)]
)
def test_every_end_has_its_exit_code(cockpit: Cockpit, runs: Path, reason: str, code: int) -> None:
    FakeRun(runs).begin().started().epochs(1).end(reason, error="why it ended")  # type: ignore[arg-type]
    answer = cockpit("tail", "last")
    assert answer.returncode == code
    assert f"{reason}: why it ended" in answer.stderr


def test_a_lost_run_is_a_failed_one(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs).begin().started().epochs(1)
    assert cockpit("tail", "last").returncode == 1


def test_a_crash_is_explained_by_the_log_and_a_sentence_explains_itself(cockpit: Cockpit, runs: Path) -> None:
    crashed = FakeRun(runs, "controls-20261127-100000-oak").begin().started()
    crashed.run.stdout.write_text("".join(f"line {number}\n" for number in range(100)))
    crashed.end("failed", exit_code=None, signal="SIGKILL")
    answer = cockpit("tail", crashed.id)
    assert "line 99" in answer.stderr
    assert "line 70" not in answer.stderr
    assert "killed by SIGKILL" in answer.stderr
    deep = FakeRun(runs, "controls-20261127-103000-ash").begin().started()
    deep.run.stdout.write_text("Traceback (most recent call last):\n" + "  deeper\n" * 40 + "KeyError: 'k'\n")
    deep.end("failed", exit_code=1, error="KeyError: 'k'")
    assert cockpit("tail", deep.id).stderr.count("deeper") == 19
    refused = FakeRun(runs, "controls-20261127-110000-elm").begin()
    refused.run.stdout.write_text("noise\nThe folder holds no recordings.\n")
    refused.end("failed", exit_code=2, error="The folder holds no recordings.")
    answer = cockpit("tail", refused.id)
    assert answer.returncode == 2
    assert "noise" not in answer.stderr
    assert answer.stderr.count("The folder holds no recordings") == 1


def test_tail_follows_a_live_run_and_interrupting_it_touches_nothing(runs: Path) -> None:
    fake = FakeRun(runs).begin().started().epochs(1)
    command = [*COMMAND, "tail", "last"]
    with (
        fake.locked(),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tail,
    ):
        assert tail.stdout is not None
        assert tail.stderr is not None
        rows = tail.stdout
        assert rows.readline().split()[0] == "Ep"
        assert set(rows.readline().strip()) == {"-"}
        assert rows.readline().split()[0] == "1"
        fake.epochs(2)
        assert rows.readline().split()[0] == "2"
        fake.begin().started(resumed_step=10)
        assert tail.stderr.readline() == f"cockpit: {fake.id} resumed from step 10\n"
        fake.epochs(2, best=2)
        assert rows.readline().split()[-1] == "*"
        tail.send_signal(signal.SIGINT)
        assert tail.wait() == 130
        assert tail.stderr.read() == ""
    assert not fake.run.commands.exists()


def test_an_early_closed_pipe_is_quiet(cockpit: Cockpit, runs: Path) -> None:
    FakeRun(runs).begin().started().epochs(*range(1, 400)).end("finished")
    command = shlex.join(map(str, COMMAND)) + " tail last | head -n 3; exit ${PIPESTATUS[0]}"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 3
    assert "BrokenPipe" not in answer.stderr


def test_reports_are_printed_as_tables_and_as_they_are(cockpit: Cockpit, runs: Path) -> None:
    tables = {
        "baselines": {
            "columns": ["name", "score", "n"],
            "rows": [["all zero", 0.25, 3], ["repeat last", None, 12]],
            "note": "on validation",
        },
        "heads": {"columns": ["head"], "rows": [], "note": ""},
    }
    fake = FakeRun(runs).begin().started().end("finished")
    fake.run.report.write_text(json.dumps({"tables": tables}))
    assert json.loads(cockpit("report", "last", "--json").stdout) == tables
    assert cockpit("report", "last").stdout.splitlines() == [
        "baselines",
        "name          score   n",
        "-----------  ------  --",
        "all zero     0.2500   3",
        "repeat last       —  12",
        "on validation",
        "",
        "heads",
        "head",
        "----",
    ]


def test_a_run_without_a_report_says_when_there_will_be_one(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().end("stopped")
    answer = cockpit("report", "last")
    assert answer.returncode == 1
    assert "No report: it is written when training finishes, and this run is stopped." in answer.stderr
    fake.run.report.write_text("[]")
    answer = cockpit("report", "last")
    assert answer.returncode == 1
    assert "cannot be read as a report" in answer.stderr


def test_nothing_from_a_run_steers_the_terminal(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs, label=HOSTILE).begin().started()
    fake.run.stdout.write_text(f"Traceback {HOSTILE}\n")
    row = epoch(1)
    row.stage = HOSTILE
    fake.say(row, ev.Alert(code="x", level="error", text=HOSTILE)).end("failed", exit_code=1, error=HOSTILE)
    fake.run.report.write_text(
        json.dumps({"tables": {HOSTILE: {"columns": [HOSTILE], "rows": [[HOSTILE]], "note": HOSTILE}}})
    )
    for arguments in (
        ("ls",),
        ("show", "last"),
        ("tail", "last"),
        ("report", "last"),
        ("ls", "--json"),
        ("show", "last", "--json"),
    ):
        answer = cockpit(*arguments)
        for text in (answer.stdout, answer.stderr):
            assert not set("\x1b\x07\u202e\r") & set(text), arguments


def test_a_terminal_of_another_alphabet_gets_what_it_can_show(runs: Path) -> None:
    FakeRun(runs, label="été → 夏").begin().started().end("finished")
    answer = in_a_process(runs, "ls", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert answer.returncode == 0
    assert "t\\xe9 \\u2192" in answer.stdout


def test_the_differences_of_a_config_are_a_table_and_json(cockpit: Cockpit, runs: Path) -> None:
    other = FakeRun(runs, "controls-20261127-201400-amber")
    fake = FakeRun(runs, "controls-20261127-211400-birch", created=2e9).begin().started()
    fake.run.config.write_text(other.run.config.read_text().replace("look: 0.5", "look: 0.75\n  idle: .nan"))
    answer = cockpit("show", "last", "--config-diff", other.id)
    assert answer.stdout.splitlines()[2:] == ["loss_weights.look  0.5                             0.75",
                                              "loss_weights.idle  —                               .nan"]  # fmt: skip
    found = json.loads(cockpit("show", "last", "--config-diff", other.id, "--json").stdout)
    assert found == [
        {"key": "loss_weights.look", "other": 0.5, "run": 0.75},
        {"key": "loss_weights.idle", "run": None},
    ]
    assert "has no parent" in cockpit("show", "last", "--config-diff", "parent").stderr
    same = cockpit("show", "last", "--config-diff", "last")
    assert (same.returncode, same.stdout) == (0, "")
    assert "does not differ" in same.stderr


@pytest.mark.behaviour("bad-filter-filters-nothing")
def test_a_tail_as_json_has_a_line_per_epoch(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().epochs(1, 2)
    fake.say(epoch(3, score=float("inf"))).end("finished")
    rows = [json.loads(line) for line in cockpit("tail", "last", "--json").stdout.splitlines()]
    assert [(row["epoch"], row["step"], row["score"]) for row in rows] == [(1, 10, 0.1), (2, 20, 0.2), (3, 30, None)]
    assert rows[0]["validation"] == {"action_f1": 0.25}
