"""Looking again and again, through a disk that fails."""

from __future__ import annotations

import threading

import pytest

from cockpit.core import poller as module
from cockpit.core.poller import Poller


def test_a_disk_that_fails_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.0)
    disk = iter([OSError(116, "Stale file handle"), PermissionError(13, "Permission denied"), None])
    seen = threading.Event()

    def look() -> float:
        if (error := next(disk, None)) is not None:
            raise error
        seen.set()
        return 60.0

    poller = Poller("test", look)
    poller.start()
    assert seen.wait(120)
    poller.stop()
    poller.join(120)
    assert not poller.is_alive()


def looking(every: float) -> tuple[Poller, threading.Semaphore]:
    """A poller that looks every so many seconds, and its looks."""
    looks = threading.Semaphore(0)

    def look() -> float:
        looks.release()
        return every

    poller = Poller("test", look)
    poller.start()
    return poller, looks


def test_it_looks_until_it_is_stopped() -> None:
    poller, looks = looking(0.0)
    for _ in range(3):
        assert looks.acquire(timeout=120)
    poller.pause()
    while looks.acquire(timeout=0.2):  # the look that was under way
        pass
    poller.resume()
    assert looks.acquire(timeout=120)
    poller.pause()
    poller.stop()
    poller.join(timeout=120)
    assert not poller.is_alive()


def test_a_look_is_hurried_and_a_pause_holds_it() -> None:
    poller, looks = looking(600.0)
    assert looks.acquire(timeout=120)
    poller.hurry()
    assert looks.acquire(timeout=120)
    poller.pause()
    poller.hurry()
    assert not looks.acquire(blocking=False)
    poller.resume()
    assert looks.acquire(timeout=120)
    poller.stop()
    poller.join(120)
    assert not poller.is_alive()
