"""bundle and unbundle as they are typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cockpit.cli.bundling import transfer_commands
from engines.runs.store import find_run
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun, epoch


def test_a_run_is_carried_to_another_folder(
    cockpit: Cockpit, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRun(runs).begin().started().say(epoch(1), epoch(2)).end("finished")
    fake.run.best.write_bytes(b"best")
    made = cockpit("bundle", "last")
    file = tmp_path / f"{fake.id}.cockpit.tar"
    assert (made.returncode, made.stdout.strip()) == (0, str(file))
    assert "scp " in made.stderr
    assert "exists already; add --force" in cockpit("bundle", "last").stderr
    assert cockpit("bundle", "last", "--force").returncode == 0

    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "there"))
    opened = cockpit("unbundle", str(file))
    assert (opened.returncode, opened.stdout.strip()) == (0, fake.id)
    assert f"{fake.id} was made elsewhere" in opened.stderr
    assert json.loads(cockpit("show", "last", "--json").stdout)["elsewhere"] is True
    assert cockpit("tail", "last").stdout.splitlines()[2:]
    run = find_run("last")
    rows = list(csv.DictReader((run.path / "bundle" / "table.csv").read_text().splitlines()))
    wanted = [epoch(1), epoch(2)]
    assert [float(row["score"]) for row in rows] == [row.score for row in wanted]
    assert {path.name for path in (run.path / "bundle").iterdir()} >= {"table.csv", "score.svg"}
    assert "made elsewhere" in cockpit("resume", "last", "--set", "training.epochs=9").stderr


def test_the_way_to_copy_it_is_that_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "a b.tar"
    ssh = {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.7 2222", "PATH": str(tmp_path)}
    (command,) = transfer_commands(file, ssh)
    assert command.startswith("scp -P 2222 '")
    assert f"@10.0.0.7:{file}' ." in command
    (tmp_path / "runpodctl").touch(0o755)
    send, scp = transfer_commands(file, {**ssh, "RUNPOD_PUBLIC_IP": "1.2.3.4", "RUNPOD_TCP_PORT_22": "10022"})
    assert send == f"runpodctl send '{file}'"
    assert scp.startswith("scp -P 10022 ")
    assert "@1.2.3.4:" in scp
