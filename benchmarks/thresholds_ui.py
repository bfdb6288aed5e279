"""The thresholds screen on 1,000,000 frames × 15 controls: from a cursor's key to the repainted screen, 200 × 50.

In one process, without a terminal: what is measured is a key's handling until everything it changed is painted.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from textual import events

from benchmarks.fake_runs import WrittenRun
from benchmarks.measure import Measurement
from benchmarks.thresholds import frames
from cockpit.app import CockpitApp
from cockpit.core.settings import SettingsFile
from cockpit.screens.thresholds import ThresholdsScreen
from engines.contract.rundir import RunDirectory
from engines.thresholds.review import About, write_review
from projects.controls.thresholds import NAMES

ROWS, SESSIONS = 1_000_000, 20
MOVES = 60
PROMISED = 50.0
"""Milliseconds from a key to the picture."""
CONFIG = """\
project: controls
data:
  path: recordings
thresholds:
  action: 0.5
  inv: 0.5
  hotbar_min_confidence: 0.3
"""


def measure() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as home:
        run = _reviewed(Path(home, "runs"))
        opened, moves, selections = asyncio.run(_drive(run, Path(home)))
    return [
        _measurement("thresholds_ui, cursor", moves),
        _measurement("thresholds_ui, next control", selections),
        Measurement(
            name="thresholds_ui, all prepared", ours=opened, theirs=opened, unit="s", ratio=1.0, reach="reported",
            note="every control sorted and its best found, in a thread beside a screen that answers",
        ),
    ]  # fmt: skip


def _measurement(name: str, found: list[float]) -> Measurement:
    found.sort()
    slow = found[int(0.95 * len(found)) - 1]
    note = f"p95 of {len(found)} keys; median {statistics.median(found):.1f} ms, slowest {found[-1]:.1f} ms"
    return Measurement(name=name, ours=slow, theirs=PROMISED, unit="ms", ratio=PROMISED / slow, reach="≥ 1", note=note)


def _reviewed(folder: Path) -> RunDirectory:
    """A run with such a review and nothing exported."""
    written = WrittenRun(folder, "controls-20261127-201400-amber")
    written.run.config.write_text(CONFIG)
    data = frames(ROWS)
    nothing = np.zeros(ROWS, np.bool_)
    arrays: dict[str, NDArray[Any]] = {
        "names": np.array(NAMES),
        "scores": data.scores,
        "targets": data.targets,
        "masks": np.ones_like(data.targets),
        "idle": data.idle,
        "groups": np.arange(ROWS) * SESSIONS // ROWS,
        "hotbar_confidence": data.scores[:, 0],
        "hotbar_correct": data.targets[:, 0],
        "hotbar_mask": nothing,
    }
    write_review(written.run.review, arrays, About(checkpoint="best.pt", step=20, epoch=2, score=0.5))
    return written.run


async def _drive(run: RunDirectory, home: Path) -> tuple[float, list[float], list[float]]:
    """Seconds until all is prepared; milliseconds of each move of the cursor, of each step to another control."""
    app = CockpitApp(folder=home / "runs", settings=SettingsFile(home / "settings.json"))
    async with app.run_test(size=(200, 50)) as pilot:
        screen = ThresholdsScreen(run)
        began = time.perf_counter()
        await app.push_screen(screen)
        while screen.tuning is None or not screen.prepared:
            await pilot.pause(0.02)
        opened = time.perf_counter() - began

        async def milliseconds(*keys: str) -> list[float]:
            found = []
            for number in range(MOVES):
                pressed = time.perf_counter()
                app.post_message(events.Key(keys[number % len(keys)], None))
                await pilot.pause(0)  # until every message is handled
                screen._compositor.render_strips()  # all of it: more than a terminal is sent
                found.append(1000 * (time.perf_counter() - pressed))
            return found

        moves = await milliseconds("right", "right_square_bracket", "left", "right", "left_square_bracket")
        return opened, moves, await milliseconds("down", "down", "up")
