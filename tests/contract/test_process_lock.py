"""The lock of a run on a volume without record locks: one live process holds it, and a dead one nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from engines.basics import process_lock
from engines.basics.lock import RunLock, lock_holder

HOLD = """
import errno, fcntl, sys
from pathlib import Path
from engines.basics.lock import RunLock
def refuse(*arguments): raise OSError(errno.ENOLCK, "No locks available")
fcntl.lockf = refuse
print(RunLock(Path(sys.argv[1])).acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def no_record_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> NoReturn:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(fcntl, "fcntl", refuse)


@pytest.mark.usefixtures("no_record_locks")
@pytest.mark.behaviour("lock-without-record-locks")
def test_one_process_holds_it_until_it_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    assert lock_holder(path) is None
    held = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert held.stdout is not None
        assert held.stdout.readline() == b"True\n"
        assert lock_holder(path) == held.pid
        assert not RunLock(path).acquire()
        held.send_signal(signal.SIGKILL)
    finally:
        held.kill()
        held.communicate()
    assert lock_holder(path) is None
    lock = RunLock(path)
    assert lock.acquire()
    assert (lock.by_process, lock_holder(path)) == (True, os.getpid())
    lock.release()
    assert lock_holder(path) is None
    assert [file.name for file in tmp_path.iterdir()] == ["engine.lock"]


@pytest.mark.usefixtures("no_record_locks")
@pytest.mark.parametrize("record", ["", "\0" * 300, "12", "x y z", "PID 1 other-boot", "99999999999999 1 a"])
def test_a_record_of_nobody_holds_nothing(tmp_path: Path, record: str) -> None:
    path = tmp_path / "engine.lock"
    path.touch()
    path.with_name("engine.lock.process").write_text(record.replace("PID", str(os.getpid())))
    assert lock_holder(path) is None
    assert RunLock(path).acquire()


def test_other_errors_are_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        RunLock(tmp_path / "engine.lock").acquire()
    assert not (tmp_path / "engine.lock.process").exists()
    assert errno.EIO not in process_lock.NO_RECORD_LOCKS
