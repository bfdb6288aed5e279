"""Runs of another machine on the screens: named after it, steered there, stale while it does not answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.app import CockpitApp
from cockpit.core.hosts.links import links
from cockpit.core.run.control import Target
from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.fleet import FleetNews
from cockpit.core.runs.listed import ListedRuns
from cockpit.core.runs.summary import RunSummary
from cockpit.core.settings import SettingsFile
from cockpit.screens.run import RunScreen
from cockpit.screens.stopping import Stopping
from cockpit.widgets.runs_table import RunsTable
from engines.contract import commands as cmd
from tests.cockpit.driving import commands_of, keys, shows, until
from tests.support.fake_run import FakeRun
from tests.support.near_ssh import use_near_ssh


@pytest.mark.behaviour("runs-of-other-machines")
async def test_a_run_of_another_machine_is_steered_there(
    cockpit: Callable[..., CockpitApp],
    fake: FakeRun,
    settings: SettingsFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_near_ssh(tmp_path, monkeypatch)
    theirs = FakeRun(tmp_path / "there", "controls-20261127-201400-birch").begin().started().epochs(1)
    settings.change(hosts=[f"box:{tmp_path / 'there'}", "nobody@far"])
    fake.begin().started().end("stopped")
    with theirs.locked():
        async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
            await until(pilot, lambda: shows(pilot, "● running", "box:birch", "■ stopped", "amber", "far not reached"))
            assert pilot.app.screen.focused is pilot.app.screen.query_one(RunsTable)
            await pilot.press("home")
            await until(pilot, lambda: keys(pilot)["stop"])
            assert not keys(pilot)["fork"]
            await pilot.press("d")
            await until(pilot, lambda: shows(pilot, "birch is on box", "ssh -t"))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and shows(pilot, "◢ box:controls-"))
            await pilot.press("p")
            await until(pilot, lambda: commands_of(theirs))
            assert isinstance(commands_of(theirs)[0], cmd.Pause)

            link = links()[0]
            monkeypatch.setattr(type(link), "stale", "box is stale since 20:40: it does not answer")
            await until(pilot, lambda: shows(pilot, "~ stale", "box is stale since 20:40"))
            assert "pause" not in keys(pilot)
    assert not links()


def test_a_link_that_drops_ends_no_stop_and_raises_no_alert_again(fake: FakeRun) -> None:
    screen: Any = SimpleNamespace()
    stopping, target = Stopping(screen), Target(fake.run, fake.id, 1, "running", False)
    assert stopping.begins(target)
    stopping.note(fake.run.path, "stale")  # nobody knows whether it has ended
    assert not stopping.begins(target)

    runs = ListedRuns()

    def hear(state: Any, raised: float | None) -> int:
        alert: Any = None if raised is None else SimpleNamespace(time=raised)
        now = RunSummary(path=fake.run.path, id=fake.id, created=0.0, state=state, alert=alert)
        return len(runs.take(FleetNews((now,), (), loading=False)))

    assert [hear("stale", None), hear("running", 5.0), hear("stale", None), hear("running", 5.0)] == [0, 0, 0, 0]
    assert [hear("running", 6.0), hear("running", None), hear("running", 7.0)] == [1, 0, 1]


def test_a_run_of_another_machine_makes_no_live_one_deletable(tmp_path: Path) -> None:
    chosen = ChosenRuns(lambda: None)
    chosen.rows = [
        RunSummary(path=tmp_path / "amber", id="amber", created=0.0, state="running"),
        RunSummary(path=tmp_path / "birch", id="birch", created=0.0, state="finished", host="box"),
    ]
    chosen.marked = {row.path for row in chosen.rows}
    assert chosen.why_not_delete() == "amber is live: stop it before deleting it."
