"""Names from outside are shown as they are: brackets in them are no markup, link or colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.core.config import configs
from cockpit.screens.choose_runs import ChooseRunsScreen
from cockpit.screens.resume import ResumeScreen
from engines.contract import events as ev
from engines.contract.tables import Table, encode
from tests.cockpit.driving import text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
NAMES = ("markup[lr=1e-3]", "[@click=app.quit]x[/]", "[/]x", "[b", "x [$bad]y[/]")


@pytest.mark.behaviour("names-are-no-markup")
@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_shown_as_it_is(
    name: str, cockpit: Make, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the title of a task, in the list of configs and their preview, in a report, in dialogs that name a run."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / f"{name.replace('/', '_')}.yaml").write_text("# A try\nproject: controls\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(configs, "SHIPPED", tmp_path / "none")
    task = FakeRun(folder, "controls-20261127-201400-birch", kind="task").begin().say(ev.Phase(phase="working"))
    info = task.run.info
    info.title = f"demo data in {name}"
    task.run.write_info(info)
    training = FakeRun(folder, f"controls-20261127-211400-{name.replace('/', '_')}", label=name).begin().started()
    training.epochs(1, best=1).end("stopped")
    training.run.report.write_bytes(encode({name: Table(("a",), ((1,),)), "other": Table(("a",), ((2,),))}))
    async with cockpit(open_run=task.run).run_test(size=(140, 30)) as pilot:
        await until(pilot, lambda: f"demo data in {name}" in text(pilot))
        await pilot.press("escape", "n")
        await until(pilot, lambda: text(pilot).count(f"{name.replace('/', '_')}.yaml") >= 2)
        await pilot.press("escape")
        for screen in (ResumeScreen(training.run, training.id), ChooseRunsScreen(folder, training.run)):
            await pilot.app.push_screen(screen)
            await until(pilot, lambda: f"-{name.replace('/', '_')}" in text(pilot))
            await pilot.press("escape")
        pilot.app.open_run(training.run)  # type: ignore[attr-defined]
        await until(pilot, lambda: name in text(pilot))
        await pilot.press("6")
        await until(pilot, lambda: "Report" in text(pilot) and name in text(pilot))
