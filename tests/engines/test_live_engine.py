"""A live session as it is used: an engine in a process of its own, and two viewers at its socket."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.core.scenes.play import PlayFollower, PlayNews, open_play
from engines.basics.errors import DataError
from engines.basics.lock import lock_holder
from engines.contract import scenes
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Press, Scene
from engines.runs.state import RunReader
from engines.runs.store import list_runs
from tests.cockpit.driving import commands_of
from tests.engines.conftest import wait_for
from tests.support import live_walk
from tests.support.fake_run import FakeRun

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """A run of the test's project with something to play."""
    live_walk.install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    run = FakeRun(tmp_path / "runs", "walk-20261127-201400-birch", project="walk").begin().run
    (run.export / "model.pt").write_bytes(b"x")
    yield run
    for found in list_runs():
        if (holder := lock_holder(found.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def shown(follower: PlayFollower, what: str, condition: Callable[[Scene], bool]) -> PlayNews:
    def look() -> PlayNews | None:
        news = follower.poll(0.05)
        assert news.live, news.log
        return news if news.scene is not None and condition(news.scene) else None

    found: PlayNews = wait_for(what, look)
    return found


def places(scene: Scene) -> tuple[int, int]:
    _, first, _, second = scene.note.split()
    return int(first), int(second)


def test_two_viewers_play_one_session_and_neither_ends_it_for_the_other(trained: RunDirectory) -> None:
    viewing = open_play(trained)
    joining = open_play(trained, seat="p2")
    assert (joining.run.path, joining.started) == (viewing.run.path, False)
    first, second, third = PlayFollower(viewing), PlayFollower(joining), PlayFollower(open_play(trained))
    assert shown(first, "the first scene", lambda scene: scene.viewers == ["p1"]).seat == "p1"
    assert shown(second, "both", lambda scene: scene.viewers == ["p1", "p2"]).seat == "p2"
    watching = wait_for("why it watches", lambda: (news := third.poll(0.05)).note and news)
    assert (watching.seat, watching.note[:20]) == ("", "p1 and p2 are taken ")
    first.send(Press("left"))
    second.send(Press("right"))
    third.send(Press("restart"))
    first.send(Press("play"))
    news = shown(second, "both going their way", lambda scene: places(scene)[0] < -3 and places(scene)[1] > 3)
    assert news.scene is not None
    assert (news.scene.live, news.scene.playing) == (True, True)
    third.end()
    first.end()
    left = shown(second, "who is left", lambda scene: scene.viewers == ["p2"]).scene
    later = shown(
        second, "it going on", lambda scene: left is not None and places(scene)[1] > places(left)[1] + 5
    ).scene
    assert left is not None
    assert later is not None
    assert places(later)[0] == places(left)[0]  # a walker without a viewer stands
    assert lock_holder(viewing.run.lock) is not None
    second.end()
    wait_for("the engine to be gone", lambda: lock_holder(viewing.run.lock) is None)
    assert RunReader(viewing.run).status().state == "finished"
    log = viewing.run.stdout.read_text()
    assert [line for line in log.splitlines() if line.startswith("p")] == ["p1 joined", "p2 joined", "p1 left"]
    assert log.endswith("ended by a viewer\n")


def test_who_joined_stops_no_engine_that_shows_nothing_yet(trained: RunDirectory) -> None:
    starting = FakeRun(trained.path.parent, "walk-20261127-201500-amber", project="walk", kind="task").begin()
    starting.run.config.write_text(f"project: walk\ntask: play\narguments: {{run: {trained.path}, recording: ''}}\n")
    with starting.locked():
        joined = open_play(trained, seat="p2")
        assert joined.run.path == starting.run.path
        PlayFollower(joined).end()
        assert commands_of(starting) == []
        PlayFollower(replace(joined, started=True)).end()  # as the terminal that started it may
        assert len(commands_of(starting)) == 1


def test_a_recording_may_be_a_folder_where_the_project_says_so(trained: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "file.npz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"file\.npz: there is no such folder; expected a recording to play"):
        open_play(trained, str(tmp_path / "file.npz"))
    (tmp_path / "game").mkdir()
    viewing = open_play(trained, str(tmp_path / "game"))
    assert str(tmp_path / "game") in viewing.run.config.read_text()
    assert viewing.run.info.title == f"{trained.info.id} played on game"
    assert open_play(trained, seat="p2").run.path == viewing.run.path  # whatever its recording
    assert not open_play(trained, seat="p2").started
    follower = PlayFollower(viewing)
    shown(follower, "the first scene", lambda scene: True)
    follower.send(scenes.End())
    wait_for("the engine to be gone", lambda: lock_holder(viewing.run.lock) is None)
    follower.close()
