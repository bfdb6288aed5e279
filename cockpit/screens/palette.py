"""The command palette: every key of a screen that can be used now, and commands without a key, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

KEY_WIDTH, NAME_WIDTH = 8, 22


class Entry(NamedTuple):
    """A command: its key, or empty, what it is searched by, and what it does."""

    key: str
    name: str
    about: str
    run: IgnoreReturnCallbackType


class OneLineProvider(Provider):
    """Offers entries in columns: key, name, what it does."""

    def entries(self) -> Iterator[Entry]:
        raise NotImplementedError

    async def discover(self) -> Hits:
        for entry in self.entries():
            yield DiscoveryHit(_line(entry, Content(entry.name)), entry.run, text=entry.name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self.entries():
            if (score := matcher.match(entry.name)) > 0:
                yield Hit(score, _line(entry, matcher.highlight(entry.name)), entry.run, text=entry.name)


def _line(entry: Entry, name: Content) -> Content:
    return Content.assemble(
        (f"{entry.key:<{KEY_WIDTH}}", "$accent"), name, " " * max(1, NAME_WIDTH - name.cell_length),
        (entry.about, "$quiet not bold"),
    )  # fmt: skip


class ActionProvider(OneLineProvider):
    """The actions of keys that have an id and a tooltip (others only move a cursor), each once as `area: verb`."""

    def entries(self) -> Iterator[Entry]:
        actions = {
            (active.binding.id, active.binding.action): active for active in self.screen.active_bindings.values()
        }
        for active in actions.values():
            binding = active.binding
            if binding.id and active.tooltip and active.enabled:
                area, _, _ = binding.id.partition(".")
                run = partial(self.app.run_action, binding.action, active.node)
                yield Entry(self.app.get_key_display(binding), f"{area}: {binding.description}", active.tooltip, run)


class SystemProvider(OneLineProvider):
    """What the app offers on every screen, without a key."""

    def entries(self) -> Iterator[Entry]:
        for title, about, run, _ in self.app.get_system_commands(self.screen):
            yield Entry("", title, about, run)
