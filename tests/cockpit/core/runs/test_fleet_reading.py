"""What following many runs costs: the bytes that were appended, not the logs again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.core.runs.fleet import Fleet
from tests.support.fake_run import FakeRun

RUNS = 64
BLOCK = 4096


def read_so_far() -> int:
    """Bytes that this thread has asked for with read calls, whatever the file object; the kernel counts."""
    return int(Path("/proc/thread-self/io").read_text().split()[1])


@pytest.mark.behaviour("byte-read-twice-run")
def test_64_runs_are_followed_without_reading_anything_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.core.runs.summary.lock_holder", lambda lock: 1)  # 64 supervisors are at work
    fakes = [FakeRun(tmp_path, f"controls-20261127-2014{place:02d}-amber").begin().started() for place in range(RUNS)]
    for fake in fakes:
        fake.epochs(*range(1, 40))
    for fake in fakes:
        for folder in (fake.run.path, fake.run.attempts):
            os.utime(folder, (1_795_810_440, 1_795_810_440))  # nothing was replaced lately
    fleet = Fleet(tmp_path)
    while fleet.poll().loading:
        pass
    own = -(read_so_far() - read_so_far())
    for number in range(40, 45):
        sizes = sum(fake.run.events.stat().st_size for fake in fakes)
        for fake in fakes[::2]:
            fake.epochs(number)
        appended = sum(fake.run.events.stat().st_size for fake in fakes) - sizes
        before = read_so_far()
        fleet.poll()
        read = read_so_far() - before - own
        assert appended <= read <= appended + BLOCK
        done = {summary.path: summary.done for summary in fleet.summaries()}
        assert [done[fake.run.path] for fake in fakes[:2]] == [number, 39]
