"""One engine a run directory: the lock is refused to a second process, and asked about without being taken."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.basics import files
from engines.basics.errors import UserError
from engines.basics.lock import RunLock, lock_holder
from engines.runs.launch import prepare_resume
from tests.support.fake_run import FakeRun

_TRY = "import sys; from pathlib import Path; from engines.basics.lock import RunLock; " \
       "print(RunLock(Path(sys.argv[1])).acquire())"  # fmt: skip


def taken_by_another(path: Path) -> bool:
    """Whether another process can take the lock."""
    return subprocess.run([sys.executable, "-c", _TRY, str(path)], capture_output=True, check=True).stdout == b"True\n"


def test_a_second_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    lock = RunLock(path)
    assert lock.acquire()
    assert not taken_by_another(path)
    assert path.stat().st_mode & 0o777 == files.FILE_MODE
    lock.release()
    assert taken_by_another(path)


def test_the_holder_is_named_and_asking_takes_nothing(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path)
    assert lock_holder(fake.run.lock) is None
    with fake.locked() as pid:
        assert lock_holder(fake.run.lock) == pid
        assert lock_holder(fake.run.lock) == pid
        assert not taken_by_another(fake.run.lock)
    assert lock_holder(fake.run.lock) is None


def test_a_failed_attempt_to_take_it_leaves_it_with_its_holder(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path)
    with fake.locked() as pid:
        assert not RunLock(fake.run.lock).acquire()
        assert lock_holder(fake.run.lock) == pid


@pytest.mark.behaviour("run-stays-running-ever")
def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path)
    with fake.locked() as pid:
        os.kill(pid, 9)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert lock_holder(fake.run.lock) is None


def test_asking_needs_no_permission_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path)
    plain = os.open

    def read_only_disk(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return plain(path, flags, mode)

    with fake.locked() as pid:
        monkeypatch.setattr(os, "open", read_only_disk)
        assert lock_holder(fake.run.lock) == pid
        monkeypatch.undo()


def test_an_unusable_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RunLock(tmp_path / "nowhere" / "engine.lock").acquire()


def test_a_live_run_is_not_resumed(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    with fake.locked() as pid, pytest.raises(UserError) as refused:
        prepare_resume(fake.run)
    assert f"process {pid}" in str(refused.value)
    assert f"cockpit stop {fake.id}" in str(refused.value)
    assert refused.value.exit_code == 1
