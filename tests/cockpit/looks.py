"""How a screen may have to look: in two sizes, and in each of them dark, light and in ASCII.

A test starts the app once a size and hands it to `Pictures`, which changes its look while it runs. So a picture costs a
tenth of a second instead of an app, and shows that a change of looks paints everything anew. After a change that is
meant: `--snapshot-update`, and look at the pictures.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from pytest_textual_snapshot import (  # type: ignore[import-untyped]
    PseudoApp,
    PseudoConsole,
    SVGImageExtension,
    node_to_report_path,
    normalize_svg,
)
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input, TextArea

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
"""Columns and lines of the terminal: the least that must do, and one with room."""

LOOKS = {"dark": ("cockpit-dark", False), "light": ("cockpit-light", False), "ascii": ("cockpit-dark", True)}
"""Theme, and whether in ASCII alone."""

STILL = "* { scrollbar-size-vertical: 0 !important; }"
"""A thumb may stand a row off, by which of size and place came last."""
LOOKING_SECONDS = 0.1
SAME_TO_ACCEPT, SAME_TO_REFUSE, SAME_TO_REFUSE_MORE = 6, 300, 20
"""Looks in a row without a change after which a picture is new, or is not the accepted one: half a minute, for a busy
machine; once that was waited in vain the tests have failed, and further ones get less."""


class Pictures:
    """Takes the screen of a running app in every look, and compares with what was accepted."""

    same_to_refuse = SAME_TO_REFUSE
    """Of all that are taken in this process."""

    def __init__(self, snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> None:
        self._snapshot = snapshot.use_extension(SVGImageExtension)
        self._request = request
        self._new = bool(request.config.getoption("update_snapshots"))

    async def take(self, pilot: Pilot[None], what: str = "", looks: Collection[str] = tuple(LOOKS)) -> None:
        """What is on the screen now; a screen with several pictures in one test says which one it is."""
        name = "-".join(filter(None, [type(pilot.app.screen).__name__, what]))
        _stop_blinking(pilot.app)
        wrong = [look for look in looks if not await self._is_as_accepted(pilot, look, f"{name}-{look}")]
        show_as(pilot.app, "dark")
        assert not wrong, f"{name} looks different in {', '.join(wrong)}; see the report"

    async def _is_as_accepted(self, pilot: Pilot[None], look: str, name: str) -> bool:
        show_as(pilot.app, look)
        accepted = self._accepted(name)
        svg = await picture(pilot, accepted, SAME_TO_ACCEPT if self._new or accepted is None else self.same_to_refuse)
        same = bool(self._snapshot(name=name) == svg)
        if not same:
            Pictures.same_to_refuse = SAME_TO_REFUSE_MORE
            self._report(name, accepted, svg)
        return same

    def _accepted(self, name: str) -> str | None:
        path = Path(SVGImageExtension.get_location(test_location=self._snapshot.test_location, index=name))
        return normalize_svg(path.read_text()) if path.exists() else None

    def _report(self, name: str, accepted: str | None, svg: str) -> None:
        """For the page that shows both, which the plugin makes when the session ends."""
        node = self._request.node
        path, line, test = node.reportinfo()
        app = PseudoApp(PseudoConsole(False, Console().size))
        told = (False, str(accepted), svg, app, path, line, f"{test} {name}", "", "", accepted is not None)
        report = node_to_report_path(node)
        report.with_name(f"{report.name}_{name}").write_bytes(pickle.dumps(told))


def show_as(app: App[Any], look: str) -> None:
    """Change the look of a running app."""
    theme, ascii_only = LOOKS[look]
    app.theme = theme
    app.ascii_only = ascii_only  # type: ignore[attr-defined]


async def picture(pilot: Pilot[None], awaited: str | None, same_to_end: int) -> str:
    """The screen as SVG: as soon as it is what is awaited, else once nothing has changed for a while."""
    before, same, svg = None, 0, ""
    while svg != awaited and same < same_to_end:
        await pilot.pause()
        if (lines := _lines(pilot.app)) != before:
            before, same = lines, 0
            svg = normalize_svg(pilot.app.export_screenshot(simplify=True))
        else:
            same += 1
            await pilot.pause(LOOKING_SECONDS)
    return svg


def _lines(app: App[Any]) -> list[list[Strip]]:
    """What is on the screen, and on those that are seen through it."""
    return [screen._compositor.render_strips() for screen in (*app._background_screens, app.screen)]


def _stop_blinking(app: App[Any]) -> None:
    for screen in app.screen_stack:
        for widget in screen.query():
            if isinstance(widget, Input | TextArea):
                widget.cursor_blink = False
