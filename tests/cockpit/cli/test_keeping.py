"""label, note, delete, and what ls leaves out, over fabricated runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import msgspec

from tests.cockpit.cli.conftest import COMMAND, Cockpit
from tests.support.fake_run import FakeRun


def ended(runs: Path, word: str, **facts: float | str) -> FakeRun:
    return FakeRun(runs, f"controls-20261127-100000-{word}", **facts).begin().started().end("finished")  # type: ignore[arg-type]


def test_words_on_a_run_are_shown_and_taken_away(cockpit: Cockpit, runs: Path) -> None:
    fake = ended(runs, "amber")
    assert cockpit("label", "last", "Größer [b]漢字\x1b[2J").returncode == 0
    assert cockpit("note", "last", "K=60").returncode == 0
    facts = json.loads(cockpit("show", "last", "--json").stdout)
    assert (facts["label"], facts["notes"], facts["id"]) == ("Größer [b]漢字", "K=60", fake.id)
    assert cockpit("label", "last", "").returncode == 0
    assert json.loads(cockpit("ls", "--json").stdout)[0]["label"] == ""
    long = cockpit("note", "last", "x" * 1001)
    assert long.returncode == 2
    assert "has 1001 characters; at most 1000 are allowed." in long.stderr
    assert fake.run.info.notes == "K=60"


def test_ls_filters_and_sorts(cockpit: Cockpit, runs: Path) -> None:
    for place, word in enumerate(("oak", "elm", "fir")):
        ended(runs, word, created=float(place), label=f"trial{place} of it")

    def listed(*arguments: str) -> list[str]:
        return [run["id"][-3:] for run in json.loads(cockpit("ls", "--json", *arguments).stdout)]

    assert listed() == ["fir", "elm", "oak"]
    assert listed("--filter", "it TRIAL1") == ["elm"]
    assert listed("--filter", "/oak|fir/", "--sort", "name") == ["fir", "oak"]
    assert cockpit("ls", "--filter", "ash").stderr == "cockpit: none of the 3 runs match 'ash'\n"
    bad = cockpit("ls", "--filter", "/[/")
    assert bad.returncode == 2
    assert "not a regular expression, unterminated character set" in bad.stderr
    assert "are shown" not in bad.stderr
    assert "expected one of newest, name, state, score" in cockpit("ls", "--sort", "size").stderr


def test_delete_asks_at_a_terminal_and_only_there(cockpit: Cockpit, runs: Path) -> None:
    amber, birch = ended(runs, "amber"), ended(runs, "birch")
    birch.run.write_info(msgspec.structs.replace(birch.run.info, parent=amber.id))
    refused = cockpit("delete", amber.id)
    assert refused.returncode == 2
    assert "this is not a terminal; add --yes." in refused.stderr
    for answer, left in (("n\n", [amber.id, birch.id]), ("y\n", [birch.id])):
        ours, theirs = pty.openpty()
        with subprocess.Popen([*COMMAND, "delete", amber.id], stdin=theirs, stderr=subprocess.PIPE, text=True) as asked:
            os.write(ours, answer.encode())
            _, told = asked.communicate(timeout=120)
        os.close(ours)
        os.close(theirs)
        assert f"{birch.id} is kept" in told
        assert sorted(os.listdir(runs)) == left


def test_delete_takes_several_and_never_a_live_one(cockpit: Cockpit, runs: Path) -> None:
    amber, birch, live = ended(runs, "amber"), ended(runs, "birch"), FakeRun(runs).begin().started()
    assert cockpit("delete", amber.id, "controls-nonsense", "--yes").returncode == 2
    assert len(os.listdir(runs)) == 3  # one that is not found: nothing is deleted
    with live.locked():
        answer = cockpit("delete", amber.id, live.id, birch.id, amber.id, "--yes")
    assert answer.returncode == 1
    assert f"{live.id} is live: stop it before deleting it." in answer.stderr
    assert answer.stderr.count("deleted ") == 2
    assert os.listdir(runs) == [live.id]
