"""The real app on fabricated runs: a clock that stands still, a machine that never changes, no waiting for timers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet

from cockpit.app import CockpitApp
from cockpit.core.runs import fleet
from cockpit.core.settings import SettingsFile
from cockpit.screens import compare, followed, run, runs
from cockpit.widgets import charts_panel
from engines.host.machine import Gpu, Reading
from tests.support.fake_run import FakeRun

NOW = 1_795_812_000.0
"""When the tests' clock stands: 2026-11-27 20:40:00 UTC."""

H100 = Reading(
    gpus=(Gpu("NVIDIA H100", 0.97, 41 * 10**9, 80 * 10**9, 604.0, 71),), no_gpu="", cores_busy=5.4, cores=16,
    memory_used=21 * 10**9, memory_total=128 * 10**9, disk_free=164 * 10**9, disk_total=500 * 10**9,
)  # fmt: skip


class StillMachine:
    def read(self, folder: Path) -> Reading:
        return H100


@pytest.fixture(scope="session", autouse=True)
def _sheets_are_parsed_once() -> Iterator[None]:
    """Each app of the tests would parse the same style sheets anew, for a tenth of its time."""
    parse, parsed = Stylesheet._parse_rules, dict[Any, Any]()

    def parse_once(self: Stylesheet, *sheet: Any, **options: Any) -> Any:
        key = (sheet, frozenset(options.items()), frozenset(self._variables.items()))
        if key not in parsed:
            parsed[key] = parse(self, *sheet, **options)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def _quick_and_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screens show at once what they know, and times are those of Greenwich."""
    for module, name in (
        (runs, "POLL_SECONDS"), (runs, "SHOW_SECONDS"), (fleet, "SCAN_SECONDS"), (run, "POLL_SECONDS"),
        (run, "ENDED_POLL_SECONDS"), (run, "FAST_SECONDS"), (run, "SLOW_SECONDS"), (compare, "SHOW_SECONDS"),
        (compare, "POLL_SECONDS"),
        (followed, "SHOW_SECONDS"), (charts_panel, "POLL_SECONDS"), (charts_panel, "SHOW_SECONDS"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 0.1)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runs folder of the test."""
    path = tmp_path / "runs"
    path.mkdir()
    monkeypatch.setenv("COCKPIT_RUNS", str(path))
    return path


@pytest.fixture
def fake(folder: Path) -> FakeRun:
    """A run in which nothing has happened yet."""
    return FakeRun(folder)


@pytest.fixture
def settings(tmp_path: Path) -> SettingsFile:
    """A person's choices: none yet."""
    return SettingsFile(tmp_path / "settings.json")


@pytest.fixture
def cockpit(folder: Path, settings: SettingsFile) -> Callable[..., CockpitApp]:
    """Makes the app: `cockpit()`, `cockpit(open_run=…)`, `cockpit(demo=…)`, `cockpit(theme="cockpit-light")`."""

    def make(theme: str = "", **options: object) -> CockpitApp:
        if theme:
            settings.change(theme=theme)
        options = {"folder": folder, "machine": StillMachine(), "clock": lambda: NOW, "settings": settings} | options
        return CockpitApp(**options)  # type: ignore[arg-type]

    return make
