"""Step through a session in a terminal, lose it, come back to the same frame in another, and leave."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.basics.lock import lock_holder
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import list_runs
from projects.controls.recordings import write_recording
from tests.e2e.conftest import COCKPIT, ROOT, Terminal, wait_for
from tests.projects.controls.exports import nested, write
from tests.projects.controls.sessions import random_session

Open = Callable[..., Terminal]


def frame_on(terminal: Terminal) -> int:
    """The frame that the header names, 0 before there is one."""
    found = re.search(r"frame (\d+)/40", terminal.screen())
    return int(found.group(1)) if found else 0


def test_a_lost_terminal_loses_no_place(terminal: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    recording = tmp_path / "walk.npz"
    write_recording(recording, random_session("walk", 40, seed=1))
    trained = launch.prepare_training(ROOT / "configs" / "controls_demo.yaml", [f"data.path={tmp_path}"])
    write(trained.export, nested())
    command = f"{shlex.quote(str(COCKPIT))} play {trained.path.name} --recording {shlex.quote(str(recording))}"

    first = terminal(command)
    wait_for("the first frame", lambda: frame_on(first) == 1, first.screen)
    first.press("NPage", "Right")
    wait_for("frame 22", lambda: frame_on(first) == 22, first.screen)
    (engine,) = (run for run in list_runs(tmp_path / "runs") if run.info.kind == "task")
    first.kill()

    second = terminal(command, (140, 38))
    wait_for("the same frame again", lambda: frame_on(second) == 22, second.screen)
    assert lock_holder(engine.lock) is not None
    second.wait_text("open inventory")
    second.press("Space")
    wait_for("playing", lambda: frame_on(second) > 22, second.screen)
    second.press("q")
    wait_for("the cockpit to leave", lambda: second.screen() == "")
    wait_for("the engine to end", lambda: lock_holder(engine.lock) is None)
    assert RunReader(engine).status().state == "finished"
    assert len(list_runs(tmp_path / "runs")) == 2
