"""`cockpit watch` and `cockpit import`, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.cockpit.cli.conftest import COMMAND, Cockpit

HOSTILE = "loss\x1b[2J\x1b]0;owned\x07\u202e"


def write(path: Path, *rows: object) -> Path:
    with open(path, "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def test_once_prints_every_metric_and_the_damage(cockpit: Cockpit, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", {"step": 1, "loss": 2.5}, [], {"step": 7, "loss": 0.125, HOSTILE: 1.0})
    answer = cockpit("watch", "log.jsonl", "--once")
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[0] == "log.jsonl: JSON lines"
    assert lines[3].split() == ["loss", "2", "0", "2.5", "0.125", "2.5", "0.125", "7", "—", "0"]
    assert lines[5] == "! 1 damaged line skipped, the first is line 2."
    assert "\x1b" not in answer.stdout
    assert "\u202e" not in answer.stdout


def test_json_has_no_bare_nan(cockpit: Cockpit, tmp_path: Path) -> None:
    write(
        tmp_path / "log.jsonl",
        {"step": 1, "loss": float("inf")},
        {"step": 2, "loss": 1.0},
        {"step": 3, "loss": float("nan")},
    )
    write(tmp_path / "empty.jsonl")
    answer = cockpit("watch", "log.jsonl", "empty.jsonl", "--json")

    def refuse(word: str) -> float:
        raise AssertionError(word)

    logs = json.loads(answer.stdout, parse_constant=refuse)["logs"]
    assert [log["path"] for log in logs] == ["log.jsonl", "empty.jsonl"]
    assert logs[0]["metrics"] == [
        {
            "name": "loss", "points": 3, "nonfinite": 2, "first": None, "min": 1.0, "max": 1.0, "last": None,
            "last_step": 3.0, "last_epoch": None, "old_branches": [],
        }
    ]  # fmt: skip
    assert logs[1]["metrics"] == []


def test_what_is_no_log_is_one_sentence(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "prose").write_text("Dear reader,\n")
    for verb in ("watch", "import"):
        answer = cockpit(verb, "prose")
        assert (answer.returncode, answer.stdout) == (1, "")
        assert answer.stderr.startswith("cockpit: prose is not a log of a known kind; known are")
        assert len(answer.stderr.splitlines()) == 1


def test_a_growing_log_is_printed_again_until_ctrl_c(runs: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", {"step": 1, "loss": 2.5})
    watching = subprocess.Popen(
        [*COMMAND, "watch", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert watching.stdout is not None
        assert watching.stderr is not None
        seen = [watching.stdout.readline() for _ in range(4)]
        assert seen[3].split()[:2] == ["loss", "1"]
        assert "following" in watching.stderr.readline()
        write(path, {"step": 2, "loss": 0.125})
        again = [watching.stdout.readline() for _ in range(5)]
        assert again[4].split()[:7] == ["loss", "2", "0", "2.5", "0.125", "2.5", "0.125"]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(120) == 130
        assert watching.stderr.read() == ""
    finally:
        watching.kill()
        watching.wait()


def test_imported_runs_are_shown_by_every_command(cockpit: Cockpit, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder / "a.jsonl", {"epoch": 1, "loss": 2.0, "val_loss": 3.0}, {"epoch": 2, "loss": 1.0, "val_loss": 2.5})
    write(folder / "b.jsonl", {"note": "nothing to see", "step": 1})
    answer = cockpit("import", "logs", "--name", "theirs")
    (run_id,) = answer.stdout.split()
    assert answer.returncode == 1  # the other file made no run, and that is said
    assert "b.jsonl has no numbers" in answer.stderr
    (listed,) = json.loads(cockpit("ls", "--json").stdout)
    assert (listed["id"], listed["state"], listed["label"], listed["epochs"]) == (run_id, "finished", "theirs", 2)
    tail = cockpit("tail", "last")
    assert tail.returncode == 0
    header, _, *rows = [line.split() for line in tail.stdout.splitlines()]
    assert header == ["Ep", "loss", "val_loss"]
    assert rows == [["1", "2.0000", "3.0000"], ["2", "1.0000", "2.5000"]]
    assert "a.jsonl (JSON lines)" in cockpit("show", "last").stdout
