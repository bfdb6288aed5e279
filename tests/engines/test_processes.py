"""Signs that the kernel killed for lack of memory, in every place where a kernel counts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.runs.state import describe_end
from engines.runs.store import create_run
from engines.supervise import Supervisor
from engines.supervisor import processes


@pytest.mark.behaviour("killed-run-tells-signal")
@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({}, 0),
        ({"proc/vmstat": "nr_free_pages 5\noom_kill 7\n"}, 7),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.events": "oom 1\noom_kill 2\n",
          "proc/vmstat": "oom_kill 7\n"}, 2),
        ({"proc/self/cgroup": "9:cpu:/x\n4:memory:/pod\n",
          "sys/fs/cgroup/memory/pod/memory.oom_control": "under_oom 0\noom_kill 3\n"}, 3),
        ({"proc/self/cgroup": "0::/gone\n", "proc/vmstat": "oom_kill 7\n"}, 7),
    ],
    ids=["nowhere", "machine", "control group", "control group of version 1", "control group without a count"],
)  # fmt: skip
def test_kills_for_lack_of_memory_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], kills: int
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(processes, "Path", lambda path: tmp_path / path.lstrip("/"))
    assert processes.oom_kills() == kills


@pytest.mark.behaviour("killed-run-tells-signal")
@pytest.mark.parametrize(
    ("code", "counted", "said"),
    [
        (-9, True, "killed by SIGKILL, out of memory (the kernel killed it) after step 0"),
        (-9, False, "killed by SIGKILL after step 0"),
        (-11, True, "killed by SIGSEGV after step 0"),  # the kernel's kill was another's
        (137, True, "exit code 137 after step 0"),
    ],
)
def test_only_a_kill_while_the_kernel_counted_one_is_called_that(
    tmp_path: Path, code: int, counted: bool, said: str
) -> None:
    run = create_run("toy", "{}", kind="training", engine="x", title="", path=tmp_path / "run")
    end = Supervisor(run)._end(1, code, counted)
    assert (end.reason, describe_end(end)) == ("failed", said)
