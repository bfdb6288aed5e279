"""Other machines on the command line: their runs listed and read, the machines remembered and forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cockpit.cli import arguments
from cockpit.core.hosts.address import Host
from cockpit.core.hosts.links import close_links
from cockpit.core.settings import SettingsFile, settings_path
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun
from tests.support.near_ssh import use_near_ssh


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """A run of the machine `box`, with a log."""
    use_near_ssh(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fake = FakeRun(tmp_path / "there", "controls-20261127-201400-birch").begin().started().epochs(1).end("finished")
    fake.run.stdout.write_text("line\n" * 3 + "the \x1b[31mend\n")
    return fake


def test_runs_there_are_listed_and_read(cockpit: Cockpit, runs: Path, theirs: FakeRun) -> None:
    ours = FakeRun(runs).begin().started().end("stopped")
    host = f"me@box:{theirs.run.path.parent}"
    listed = json.loads(cockpit("ls", "--json", "--host", host).stdout)
    assert [(one["host"], one["id"], one["state"]) for one in listed] == [
        ("box", theirs.id, "finished"), ("", ours.id, "stopped")
    ]  # fmt: skip
    close_links()
    assert f"box:{theirs.id}  finished" in cockpit("ls", "--host", host).stdout
    close_links()
    assert not (Host.parse(host).folder() / "1" / theirs.id / "logs").exists()  # a list needs no output
    assert cockpit("log", "birch", "--host", host, "-n", "2", "-f").stdout == "line\nthe end\n"
    close_links()
    assert SettingsFile(settings_path()).value.hosts == []  # only the screen remembers
    failed = cockpit("ls", "--host", "nobody@box")
    close_links()
    assert (failed.returncode, ours.id in failed.stdout) == (1, True)
    assert "box: the login failed; run `ssh nobody@box` once" in failed.stderr


def test_hosts_are_remembered_asked_and_forgotten(cockpit: Cockpit, theirs: FakeRun) -> None:
    host = f"me@box:{theirs.run.path.parent}"
    settings = SettingsFile(settings_path())
    assert "needs a terminal" in cockpit("--host", host, "--host", "nobody@far").stderr
    assert SettingsFile(settings_path()).value.hosts == [host, "nobody@far"]
    asked = cockpit("hosts", "--json")
    assert asked.returncode == 1
    near, far = json.loads(asked.stdout)
    assert near == {"host": host, "runs": 1, "live": 0, "problem": ""}
    assert "the login failed" in far["problem"]
    kept = Host.parse(host).folder()
    assert (kept / "1" / theirs.id / "run.json").is_file()
    assert cockpit("hosts", "--forget", "box").returncode == 0
    assert not kept.exists()
    assert theirs.run.info_file.is_file()
    assert SettingsFile(settings.path).value.hosts == ["nobody@far"]
    assert "No host is called 'fat' (did you mean 'far'?)" in cockpit("hosts", "--forget", "fat").stderr


def test_hosts_before_and_after_a_command_are_all_asked() -> None:
    assert arguments.parse(["--host", "a", "ls", "--host", "b", "--host", "c"]).hosts == ["a", "b", "c"]
    assert arguments.parse(["ls"]).hosts == []


def test_a_host_goes_with_no_command_that_would_act_on_this_machine(cockpit: Cockpit) -> None:
    for words in (["stop", "amber"], ["train", "x.yaml"], ["resume", "amber"]):
        assert cockpit("--host", "box", *words).returncode == 2
    assert "expected user@box" in cockpit("--host=-oProxyCommand=x", "ls").stderr
