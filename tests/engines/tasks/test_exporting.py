"""An export's files change together, and by one writer at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.tasks.exporting import alone, as_json, log_files, replace_export
from tests.projects.controls.task_context import Listener

HOLDER = """
import sys
from pathlib import Path
from engines.contract.rundir import RunDirectory
from engines.tasks.exporting import alone

with alone(RunDirectory(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_no_longer_delivered_goes_and_what_is_somebody_elses_stays(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "export"
    replace_export(folder, {"a.pt": b"1", "graph": b"2"}, ("a.pt", "graph", "c.json"))
    (folder / "mine.txt").write_bytes(b"precious")
    replace_export(folder, {"a.pt": b"3", "c.json": b"4"}, ("a.pt", "graph", "c.json"))
    assert files(folder) == {"a.pt": b"3", "c.json": b"4", "mine.txt": b"precious"}
    listener = Listener()
    log_files(listener, folder, ["a.pt"])
    assert listener.lines == [f"{folder / 'a.pt'}  1 bytes"]


def test_a_full_disk_leaves_the_older_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_export(tmp_path, {"a": b"old", "b": b"old"}, ("a", "b"))
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_export(tmp_path, {"a": b"new", "c": b"new"}, ("a", "b", "c"))
    assert files(tmp_path) == {"a": b"old", "b": b"old"}


def test_two_do_not_write_one_export(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.make()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    command = [sys.executable, "-c", HOLDER, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DataError, match="export is being written right now"), alone(run):
            raise AssertionError
        other.communicate(b"")
    (run.export / ".a.pt.00000000.tmp").write_bytes(b"half an export that was killed")
    with alone(run):
        assert files(run.export) == {}


def test_json_has_no_numbers_that_readers_refuse() -> None:
    assert as_json({"a": [1.5, float("nan"), float("inf")]}) == b'{\n  "a": [\n    1.5,\n    null,\n    null\n  ]\n}\n'
