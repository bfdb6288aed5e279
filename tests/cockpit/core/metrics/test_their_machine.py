"""The machine of a run that is elsewhere, from what its supervisor records and its host says."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from cockpit.core.hosts.address import Host
from cockpit.core.hosts.link import Link, TheirSize
from cockpit.core.metrics.their_machine import TheirMachine
from engines.contract.steps import StepWriter
from engines.host.machine import Gpu
from tests.support.fake_run import FakeRun


def test_the_newest_record_is_the_reading_and_an_old_one_says_when_it_was(tmp_path: Path) -> None:
    run = FakeRun(tmp_path).run
    link = Link(Host.parse("gpu1"))
    link.machine = TheirSize(16.0, 64 * 10**9, 10**12)
    machine = TheirMachine(run, link)
    assert machine.read(run.path).no_gpu == "nothing recorded on gpu1 yet"

    run.system.mkdir()
    columns = ["cores_busy", "memory_used", "disk_free", "gpu0.utilisation", "gpu0.memory_used", "gpu0.celsius"]
    writer, now = StepWriter(run.system, columns), time.time()
    writer.append(np.array([[now - 5, 1, 2.0, 1e9, 5e9, 0.1, 1e9, 40], [now, 1, 3.5, 2e9, 4e9, 0.97, 41e9, 71]]))
    read = machine.read(run.path)
    assert read.gpus == (Gpu("GPU 0", 0.97, 41 * 10**9, None, None, 71, "41.0 GB used"),)
    assert (read.cores_busy, read.cores, read.memory_used, read.memory_total) == (3.5, 16.0, 2 * 10**9, 64 * 10**9)
    assert (read.disk_free, read.disk_total, read.no_gpu) == (4 * 10**9, 10**12, "")

    run.system.joinpath("00001.f64").unlink()
    writer = StepWriter(run.system, columns)
    writer.append(np.array([[now - 3600, 1, 3.5, 2e9, 4e9, np.nan, -1e300, 1e300]]))
    old = machine.read(run.path)
    assert old.no_gpu.startswith("gpu1 at ")
    assert old.gpus == (Gpu("GPU 0", None, None, None, None, None, ""),)
