"""Deleting runs and giving them words."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cockpit.core.runs import removal
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.labels import describe
from engines.basics.errors import DataError, UserError
from engines.basics.lock import RunLock
from engines.contract.rundir import RunDirectory
from engines.runs.store import list_runs
from tests.support.fake_run import FakeRun


def ended(folder: Path, word: str = "amber") -> FakeRun:
    return FakeRun(folder, f"controls-20261127-100000-{word}").begin().started().end("finished")


@pytest.mark.behaviour("run-stays-running-ever")
def test_a_run_goes_with_all_its_files(tmp_path: Path) -> None:
    gone, stays = ended(tmp_path), ended(tmp_path, "birch")
    removal.remove(gone.run.path)
    assert os.listdir(tmp_path) == [stays.id]


def test_its_size_is_what_it_occupies_and_links_count_once(tmp_path: Path) -> None:
    fake = ended(tmp_path)
    before = removal.look(fake.run.path).size
    fake.run.last.write_bytes(b"x" * 1_000_000)
    os.link(fake.run.last, fake.run.best)
    grown = removal.look(fake.run.path).size - before
    assert 1_000_000 <= grown < 1_100_000


def test_a_live_run_is_refused_whole(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    with fake.locked():
        files = sorted(tmp_path.rglob("*"))
        with pytest.raises(UserError, match=r"amber is live: stop it before deleting it\."):
            removal.remove(fake.run.path)
        assert sorted(tmp_path.rglob("*")) == files
    removal.remove(fake.run.path)
    assert os.listdir(tmp_path) == []


def test_one_that_came_alive_in_the_last_moment_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ended(tmp_path)
    monkeypatch.setattr(RunLock, "acquire", lambda lock: True)  # as if it had been free just before
    with fake.locked(), pytest.raises(UserError, match="is live"):
        removal.remove(fake.run.path)
    assert os.listdir(tmp_path) == [fake.id]
    assert fake.run.attempt(1).ended is not None


def test_of_a_link_only_the_link_goes(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "runs", tmp_path / "mine"
    fake = ended(elsewhere)
    folder.mkdir()
    link = folder / "controls-20261127-110000-birch"
    link.symlink_to(fake.run.path)
    assert removal.look(link) == removal.Removal(link, 0, fake.run.path)
    with fake.locked(), pytest.raises(UserError, match="is live"):
        removal.remove(link)
    removal.remove(link)
    assert os.listdir(folder) == []
    assert fake.run.info.id == fake.id
    link.symlink_to(tmp_path / "gone")
    removal.remove(link)
    assert os.listdir(folder) == []


def test_what_cannot_be_deleted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ended(tmp_path)
    with pytest.raises(UserError, match="gone already"):
        removal.remove(tmp_path / "controls-20261127-110000-birch")

    def refuse(*paths: object) -> None:
        raise PermissionError(13, "Permission denied", str(fake.run.path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(UserError, match=r"amber cannot be deleted \(Permission denied"):
            removal.remove(fake.run.path)
    assert fake.run.info.id == fake.id
    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(UserError, match="off the list, but some of its files"):
        removal.remove(fake.run.path)


def test_leftovers_of_a_crash_are_no_runs_and_go_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, stays = ended(tmp_path), ended(tmp_path, "birch")

    class Crash(BaseException):
        pass

    def crash(path: Path) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", crash)
        with pytest.raises(Crash):
            removal.remove(fake.run.path)
    assert len(os.listdir(tmp_path)) == 2
    assert [run.path for run in list_runs(tmp_path)] == [stays.run.path]
    assert [summary.id for summary in Fleet(tmp_path).poll().changed] == [stays.id]
    removal.remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == [stays.id]
    removal.remove_leftovers(tmp_path / "none")


def test_words_on_a_run_live_or_not(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, label="old").begin().started()
    with fake.locked():
        describe(fake.run, label="  Größer 漢字 \x1b[31mred\x07\u202e ")
        describe(fake.run, notes="one\ntwo")
    assert (fake.run.info.label, fake.run.info.notes) == ("Größer 漢字 red", "one two")
    assert fake.run.path.name == fake.id == fake.run.info.id
    describe(fake.run, label="")
    assert (fake.run.info.label, fake.run.info.notes) == ("", "one two")
    with pytest.raises(UserError, match=r"The label of .*amber has 81 characters; at most 80 are allowed\."):
        describe(fake.run, label="x" * 81)
    fake.run.info_file.write_text("{garbage")
    with pytest.raises(DataError, match=r"run\.json cannot be read"):
        describe(fake.run, label="new")
    assert fake.run.info_file.read_text() == "{garbage"
    with pytest.raises(DataError, match="not a run directory"):
        describe(RunDirectory(tmp_path / "none"), label="new")
