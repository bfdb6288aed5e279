"""A real task over processes, under its supervisor: a stop is heard, and a kill of either leaves nothing alive."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.runs import launch
from tests.engines.conftest import LiveRun, alive, wait_for

SPEC = """
from engines.contract.spec import Spec, Task
SPEC = Spec(name="reader", title="Reads", config="", project="", columns=(), heads=(),
            tasks={"read": Task("reader.work:read", "read files")})
"""
WORK = """
import os, signal, sys
from pathlib import Path
from engines.tasks.each_file import each_file

def one(path):
    if path.endswith("hang"):
        Path(path + ".part").write_text(f"{os.getpid()} {'torch' in sys.modules}")
        os.rename(path + ".part", path)
        while True:
            signal.pause()
    os.kill(os.getpid(), signal.SIGKILL)

def read(arguments, context):
    with each_file(one, arguments["paths"], context.check, workers=2) as outcomes:
        for outcome in outcomes:
            context.log(f"{outcome.item}: {outcome.reason}")
"""


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveRun]:
    """A task that logs the death of one file's process and hangs in the next, in a project of its own."""
    folder = tmp_path / "project"
    for name, text in {
        "reader/__init__.py": "",
        "reader/spec.py": SPEC,
        "reader/work.py": WORK,
        "reader-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: reader\nVersion: 1\n",
        "reader-1.dist-info/entry_points.txt": "[cockpit.projects]\nreader = reader.spec:SPEC\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(Path.cwd())]))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.syspath_prepend(str(folder))
    paths = ["dies", str(tmp_path / "hang")]
    live = LiveRun(launch.prepare_task("reader", "read", {"paths": paths}, title="reading"))
    live.start()
    yield live
    if (holder := lock_holder(live.run.lock)) is not None:
        os.kill(holder, signal.SIGQUIT)


def worker(tmp_path: Path, live: LiveRun) -> int:
    """The process that hangs, once the log has the other's death."""
    wait_for("the death in the log", lambda: "dies: its process died by SIGKILL" in live.log())
    hang = tmp_path / "hang"
    pid, has_torch = wait_for("a process that hangs", lambda: hang.exists() and hang.read_text().split())
    assert has_torch == "False"
    return int(pid)


def test_a_stop_is_heard_while_a_file_hangs(tmp_path: Path, reading: LiveRun) -> None:
    pid = worker(tmp_path, reading)
    reading.send(cmd.Stop(attempt=1))
    assert reading.wait_end() == "stopped"
    assert not alive(pid)


@pytest.mark.parametrize("which", ["engine", "supervisor"])
def test_a_kill_leaves_no_process(tmp_path: Path, reading: LiveRun, which: str) -> None:
    pid = worker(tmp_path, reading)
    reading.kill(which)
    wait_for("the worker to be gone", lambda: not alive(pid))
