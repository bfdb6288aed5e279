"""Two terminals in one live session: each its own walker, rewinding, a branch, and one of them leaves."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from engines.basics.lock import lock_holder
from engines.runs.store import list_runs
from tests.e2e.conftest import COCKPIT, ROOT, Terminal, wait_for
from tests.support import live_walk
from tests.support.fake_run import FakeRun

Open = Callable[..., Terminal]


def places(terminal: Terminal) -> tuple[int, int]:
    """Where the terminal shows the walkers."""
    found = re.search(r"p1 (-?\d+) p2 (-?\d+)", terminal.screen())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def test_a_second_terminal_joins_and_stays_when_the_first_leaves(terminal: Open, tmp_path: Path) -> None:
    live_walk.install(tmp_path)
    trained = FakeRun(tmp_path / "runs", "walk-20261127-201400-birch", project="walk").begin()
    (trained.run.export / "model.pt").write_bytes(b"x")
    path = shlex.quote(f"{tmp_path}{os.pathsep}{ROOT}")
    command = f"PYTHONPATH={path} {shlex.quote(str(COCKPIT))} play {trained.run.path.name}"

    first = terminal(command)
    first.wait_text("p1 (you)")
    assert "‖ paused  step 1  ×1" in first.screen()
    second = terminal(f"{command} --as p2", (120, 35))
    second.wait_text("p1 p2 (you)")
    first.press("Left")
    second.press("Right", "Space")
    wait_for("both going their way", lambda: places(second)[0] < -3 and places(second)[1] > 3, second.screen)
    assert "● live" in second.screen()
    first.press("PPage", "PPage")  # pauses
    first.wait_text("‖ paused")
    wait_for("the past", lambda: re.search(r"step \d+/\d+", second.screen()), second.screen)
    first.press("Down", ".")
    wait_for("a branch that ends here", lambda: re.search(r"step \d+  ×1", first.screen()), first.screen)
    first.press("q")
    second.wait_text("  p2 (you)")
    where = places(second)
    second.press("Right", "Space")
    wait_for("it going on", lambda: places(second)[1] > where[1] + 3, second.screen)
    (engine,) = (run for run in list_runs(tmp_path / "runs") if run.info.kind == "task")
    assert lock_holder(engine.lock) is not None
    second.press("q")
    wait_for("the engine to end", lambda: lock_holder(engine.lock) is None)
    assert "p1 branched off at step" in engine.stdout.read_text()
