"""A scene on the screen: the world, the panels beside it, the timeline below, and a line that says where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget

from cockpit.core.format import count
from cockpit.core.scenes import canvas, panels
from cockpit.core.scenes.cells import Row
from cockpit.core.text import plain
from cockpit.widgets.cells_view import CellsView
from engines.contract.scenes import Panel, Scene

MOST_PANELS = 8
SLOW = 0.95
"""A speed that falls below this share of what is asked for is shown."""


class Timeline(CellsView):
    """Levels along the session and the place in it; a click goes there."""

    class Picked(Message):
        """A place was clicked: `share` of the way from start to end."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Picked(event.x / max(1, self.size.width - 1)))


class SceneView(Vertical):
    """Everything of a scene but its title line and its actions."""

    def __init__(self) -> None:
        super().__init__(id="scene")
        self._panels: list[CellsView] = []

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield CellsView(id="world")
            yield Vertical(id="panels")
        yield Timeline(id="timeline", classes="")

    def show(self, scene: Scene) -> int:
        """Draw what changed of `scene`; gives about how many bytes the terminal is sent."""
        world = self.query_one("#world", CellsView)
        world.entitle(scene.view.title)
        cost = world.show(partial(canvas.draw, scene.view))
        cost += self._show_panels(scene.panels[:MOST_PANELS])
        strip = partial(_strip, scene)
        return cost + self.query_one(Timeline).show(strip)

    def _show_panels(self, shown: list[Panel]) -> int:
        column = self.query_one("#panels", Vertical)
        column.display = bool(shown)
        while len(self._panels) < len(shown):
            panel = CellsView(id=f"panel-{len(self._panels)}")
            self._panels.append(panel)
            column.mount(panel)
        cost = 0
        for k, widget in enumerate(self._panels):
            widget.display = k < len(shown)
            if k < len(shown):
                widget.styles.height = f"{len(shown[k].rows) + 1}fr"
                widget.styles.max_height = len(shown[k].rows) + 2  # the frame
                widget.entitle(shown[k].title, shown[k].note)
                cost += widget.show(partial(panels.draw_panel, shown[k]))
        return cost


def _strip(scene: Scene, width: int, height: int) -> list[Row]:
    return panels.draw_strip(scene.strip, scene.position, scene.total, width)[:height]


def _who(viewers: Sequence[str], seat: str) -> str:
    """Who plays: `p1 (you) p2`, or `watching p1 p2`."""
    names = [f"{plain(viewer)} (you)" if viewer == seat else plain(viewer) for viewer in viewers]
    return " ".join(names if seat else ["watching", *names])


class PlayHeader(Widget):
    """Which session, what it does now, where it stands."""

    COMPONENT_CLASSES = {"header--app", "header--name", "header--text", "header--quiet", "header--live", "header--bad"}

    def __init__(self) -> None:
        super().__init__(id="header")
        self._parts: list[tuple[str, str]] = []

    def say(self, name: str, state: str, tone: str, scene: Scene | None, seat: str = "") -> int:
        """Draws only if a character changes; gives about how many bytes the terminal is sent.

        seat: this viewer's, of a live session.
        """
        parts = [("◢ ", "app"), (plain(name), "name"), (f"  {state}", tone)]
        if scene is not None:
            at_the_end = scene.live and scene.position == scene.total - 1
            of = f"/{count(scene.total)}" if scene.total and not at_the_end else ""
            parts.append((f"  {plain(scene.unit)} {count(scene.position + 1)}{of}  ×{scene.speed:g}", "text"))
            if 0 < scene.reached < SLOW * scene.speed:
                parts.append((f", reaches ×{scene.reached:.2g}", "bad"))
            if scene.live:
                parts.append((f"  {_who(scene.viewers, seat)}", "text"))
            parts.append((f"  {plain(scene.note)}", "quiet"))
        if parts == self._parts:
            return 0
        self._parts = parts
        self.refresh()
        return 200

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for words, kind in self._parts:
            text.append(words, self._style(kind))
        return text

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"header--{name}", partial=True)
