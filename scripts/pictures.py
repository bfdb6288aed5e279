"""Makes the pictures of the README: `.venv/bin/python scripts/pictures.py` trains three small models and looks at them.

It takes some minutes and needs `resvg-py`, which turns the app's own screenshots into PNG files, and the font DejaVu
Sans Mono. `pictures.py play RUN NAME KEY…` makes a picture NAME of Play, of a run that is there, after these keys.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.scenes.play import open_play
from cockpit.core.settings import SettingsFile
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.runs.store import find_run, list_runs

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "img"
CONFIG = ROOT / "configs" / "controls_demo.yaml"
RUNS = (
    ("one layer", ["model.num_layers=1", "training.epochs=5"]),
    ("look weight up", ["loss_weights.look=0.8", "training.epochs=5"]),
    ("baseline", ["training.epochs=60"]),
)
"""Labels and settings; the last one is still running when the pictures are taken."""
LOOKED_AT = 12
"""Epochs of the last run until it is looked at."""
_FONT = re.compile(r"@font-face\s*{[^}]*}")
FONT = "DejaVu Sans Mono"


def train() -> None:
    """Fills the runs folder."""
    cockpit("data", "make", "controls", "data/controls_demo")
    cockpit("delete", "last", "--yes")  # what made the data is no training to compare
    for label, settings in RUNS[:-1]:
        cockpit("train", str(CONFIG), "--name", label, *(part for one in settings for part in ("--set", one)))
    label, settings = RUNS[-1]
    cockpit("train", str(CONFIG), "--detach", "--name", label, *(part for one in settings for part in ("--set", one)))
    reader = RunReader(newest())
    while len(reader.history.epochs) < LOOKED_AT:
        assert reader.status().live, "the run to be looked at has ended"
        if len(reader.history.epochs) == LOOKED_AT // 2 and not reader.history.answers:
            cockpit("weights", "last", "look=0.4")
        time.sleep(0.2)


def cockpit(*arguments: str) -> None:
    subprocess.run([sys.executable, "-P", "-m", "cockpit.cli", *arguments], check=True)


def newest() -> RunDirectory:
    return max(trainings(), key=lambda run: run.info.created)


def trainings() -> list[RunDirectory]:
    return [run for run in list_runs() if run.info.kind == "training"]


async def take(name: str, size: tuple[int, int], shows: str, *keys: str, app: CockpitApp, first: str = "") -> None:
    """One picture: the app opened until `first` is there, `keys` pressed, and `shows` on the screen."""
    async with app.run_test(size=size) as pilot:
        while first not in words(pilot):
            await pilot.pause(0.2)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(1.5)  # what a key opens reads files in threads
        while shows not in words(pilot):
            await pilot.pause(0.2)
        await pilot.pause(3.0)
        write_png(name, app.export_screenshot(title="cockpit"))


def opened(run: RunDirectory | None = None) -> CockpitApp:
    """The app at a run, or at the list of runs."""
    return CockpitApp(open_run=run, settings=SettingsFile(Path("settings.json")))


def words(pilot: Pilot[None]) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in pilot.app.screen._compositor.render_strips()
    )


def write_png(name: str, svg: str) -> None:
    """With a font of this machine: a picture asks no server for any."""
    import resvg_py

    drawn = _FONT.sub("", svg).replace("Fira Code", FONT)
    (PICTURES / f"{name}.png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_string=drawn, monospace_family=FONT)))


def play(run: str, name: str, *keys: str) -> None:
    """A picture of Play, the user's own settings aside; its engine ends by itself."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SettingsFile(Path(folder) / "settings.json")
        app = CockpitApp(play=open_play(find_run(run)), settings=settings)
        asyncio.run(take(name, (140, 36), "Reward and value", *keys, app=app, first="Reward and value"))


def main() -> None:
    assert importlib.util.find_spec("resvg_py"), "resvg-py is not installed"
    if sys.argv[1:2] == ["play"]:
        play(*sys.argv[2:])
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"COCKPIT_RUNS": f"{folder}/runs", "XDG_STATE_HOME": folder}
        train()
        asyncio.run(take("runs", (140, 20), "one layer", app=opened()))
        asyncio.run(take("run", (140, 40), "Score", app=opened(newest())))
        asyncio.run(take("compare", (188, 44), "num_layers", "asterisk", "c", app=opened()))
        cockpit("stop", "last")


if __name__ == "__main__":
    main()
