"""What the recorder writes is what the machine said, and whatever goes wrong in it stays in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from engines.contract.steps import logged, read_segments
from engines.host.machine import Gpu, Reading
from engines.supervisor import recorder
from engines.supervisor.recorder import Recorder
from tests.engines.conftest import PATIENCE, wait_for

GB = 10**9
H100 = Gpu("NVIDIA H100", 0.97, 41 * GB, 80 * GB, 604.0, 71)
IDLE = Gpu("NVIDIA H100", 0.0, 1 * GB, 80 * GB, None, 30)


def reading(*gpus: Gpu, cores: float = 5.5) -> Reading:
    return Reading(gpus, "", cores, 16, 21 * GB, 128 * GB, 164 * GB, 500 * GB)


class Script:
    """A machine that says what it is told to, and after that the last again; an error is raised."""

    def __init__(self, *answers: Reading | Exception) -> None:
        self._answers = list(answers)
        self.asked = 0

    def read(self, folder: Path) -> Reading:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Records a machine until it has been asked so often; gives the folder."""
    monkeypatch.setattr(recorder, "SECONDS", 0.005)

    def make(machine: Script, times: int, *, attempt: int = 1, engine: int = os.getpid()) -> Path:
        thread = Recorder(tmp_path / "metrics" / "system", attempt, engine, machine)
        thread.start()
        wait_for("the machine to be asked", lambda: machine.asked > times)
        thread.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        return tmp_path / "metrics" / "system"

    return make


def test_a_record_is_the_reading_with_its_time_and_attempt(record: Callable[..., Path]) -> None:
    before = time.time()
    waits = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        folder = record(Script(reading(H100, IDLE)), 3, attempt=4, engine=engine.pid)
        resident = psutil.Process(engine.pid).memory_info().rss
        engine.communicate()
    ((columns, rows),) = read_segments(folder)
    first = dict(zip(columns, rows[0].tolist(), strict=True))
    assert first.pop("engine_memory") == pytest.approx(resident, rel=0.1)
    assert before <= first.pop("step") <= time.time()
    assert first == {
        "attempt": 4.0, "cores_busy": 5.5, "memory_used": 21e9, "disk_free": 164e9,
        "gpu0.utilisation": 0.97, "gpu0.memory_used": 41e9, "gpu0.watts": 604.0, "gpu0.celsius": 71.0,
        "gpu1.utilisation": 0.0, "gpu1.memory_used": 1e9, "gpu1.celsius": 30.0,
    }  # fmt: skip
    assert (np.diff(rows[:, 0]) > 0).all()


def test_a_card_that_falls_silent_leaves_a_gap_and_one_that_appears_a_new_segment(record: Callable[..., Path]) -> None:
    machine = Script(reading(), reading(H100), reading(), reading(H100))
    (_, alone), (columns, both) = read_segments(record(machine, 4))
    assert len(alone) == 1
    power = both[:, columns.index("gpu0.watts")]
    assert logged(power)[:3].tolist() == [True, False, True]


def test_failures_are_told_once_and_the_record_goes_on(
    record: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Script(OSError("no space"), ValueError("odd"), reading(cores=2.0))
    ((columns, rows),) = read_segments(record(machine, 4))
    assert set(rows[:, columns.index("cores_busy")]) == {2.0}
    assert capsys.readouterr().err == "Machine load is not being recorded: OSError('no space')\n"


def test_processes_that_ended_count_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise psutil.NoSuchProcess(2)

    child = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=300))
    family = [SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=500), children=lambda recursive: [child]), child]
    monkeypatch.setattr(psutil, "Process", lambda pid: family[0])
    one = Recorder(tmp_path, 1, 1, Script(reading()))
    assert one._engine_memory() == 800
    child.memory_info = gone
    assert one._engine_memory() == 500


def test_it_imports_no_numpy_before_the_engine_has_had_its_start() -> None:
    code = "import sys, engines.supervise; print('numpy' in sys.modules, 'pynvml' in sys.modules)"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "False"]
