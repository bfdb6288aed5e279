"""The keys of a screen in one line, painted when one of them comes, goes or is greyed.

One widget draws them all. With one a key, as Textual has it, a footer took 50 ms to make, and a start made five.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import ActiveBinding, Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

GAP = "  "
FIRST, OWN, LAST = range(3)


class Shown(NamedTuple):
    """A key as it stands in the line, what typing it would be, and what it does."""

    sign: str
    words: str
    key: str
    enabled: bool
    tooltip: str
    rank: int
    """Of how much use it is: the ways out and the help are always there, the palette only where all others are."""

    @property
    def width(self) -> int:
        return cell_len(f"{self.sign} {self.words}")


class Footer(Widget):
    """What can be done here and now; a click does it, and pointing at it tells more."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"footer--key", "footer--words", "footer--pointed"}

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Shown] = []
        self._pointed: Shown | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._shown = self._read()

    def notify_style_update(self) -> None:
        """Names of keys are others in ASCII."""
        super().notify_style_update()
        if self._shown:
            self._shown = self._read()
            self.refresh()

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        """Without the terminal's focus nothing on the screen has it either, and half of the keys are away."""
        if self.app.app_focus and self.is_attached and (shown := self._read()) != self._shown:
            self._shown = shown
            self.refresh()

    def _read(self) -> list[Shown]:
        """The first key of each action that is to be shown."""
        found: dict[str, Shown] = {}
        for node, binding, enabled, tooltip in _as_declared(self.screen.active_bindings.values()):
            if binding.show and binding.action not in found:
                sign = self.app.get_key_display(binding)
                found[binding.action] = Shown(
                    sign, binding.description, binding.key, enabled, tooltip, self._rank(node, binding)
                )
        return list(found.values())

    def _rank(self, node: DOMNode, binding: Binding) -> int:
        if binding.action == "command_palette":
            return LAST
        return FIRST if node is self.app or binding.key == "escape" else OWN

    def _fitting(self) -> list[Shown]:
        """Those that have space, by rank: of the screen's own keys the earlier, the more important."""
        room, fitting = self.size.width + len(GAP), set()
        for it in sorted(self._shown, key=lambda it: it.rank):
            room -= it.width + len(GAP)
            if it.rank == FIRST or room >= 0:
                fitting.add(it)
        return [it for it in self._shown if it in fitting]

    def render_line(self, y: int) -> Strip:
        gap = Segment(GAP, Style(bgcolor=self.rich_style.bgcolor))
        line: list[Segment] = []
        for it in self._fitting():
            line += [*([gap] if line else []), *self._segments(it)]
        return Strip(line)

    def _segments(self, it: Shown) -> list[Segment]:
        kinds = ("pointed", "pointed") if it == self._pointed else ("key", "words")
        styles = (self.get_component_rich_style(f"footer--{kind}") for kind in kinds)
        sign, words = (style + Style(dim=not it.enabled or None) for style in styles)
        return [Segment(it.sign, sign), Segment(f" {it.words}", words)]

    def _under(self, event: events.MouseEvent) -> Shown | None:
        """The key under the pointer."""
        if (offset := event.get_content_offset(self)) is not None:
            start = 0
            for it in self._fitting():
                if start <= offset.x < start + it.width:
                    return it
                start += it.width + len(GAP)
        return None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point(self._under(event))

    def on_leave(self) -> None:
        self._point(None)

    def _point(self, it: Shown | None) -> None:
        if it != self._pointed:
            self._pointed = it
            self.tooltip = it.tooltip if it else None
            self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if (it := self._under(event)) is None:
            return
        if it.enabled:
            self.app.simulate_key(it.key)
        else:
            self.app.bell()


def _as_declared(active: Iterable[ActiveBinding]) -> list[ActiveBinding]:
    """In the order of their nodes and, there, of the classes: a key that a person chose for itself is active last."""
    groups: dict[DOMNode, list[ActiveBinding]] = {}
    for one in active:
        groups.setdefault(one.node, []).append(one)
    ordered = []
    for node, group in groups.items():
        lists = (vars(cls).get("BINDINGS", ()) for cls in type(node).__mro__)
        ids = [binding.id for declared in lists for binding in declared if isinstance(binding, Binding)]
        place = {name: place for place, name in reversed(list(enumerate(ids)))}
        ordered += sorted(group, key=lambda one: place.get(one.binding.id, len(place)))
    return ordered
