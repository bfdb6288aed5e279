"""Every key of a screen in the command palette, named `area: verb` with the key, as long as it can be used now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.types import IgnoreReturnCallbackType


class ActionProvider(Provider):
    """Offers the actions bound to keys that have an id and a tooltip (others only move a cursor), each once."""

    async def discover(self) -> Hits:
        for name, callback, about in self._actions():
            yield DiscoveryHit(name, callback, help=about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, callback, about in self._actions():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), callback, help=about)

    def _actions(self) -> Iterator[tuple[str, IgnoreReturnCallbackType, str]]:
        actions = {
            (active.binding.id, active.binding.action): active for active in self.screen.active_bindings.values()
        }
        for active in actions.values():
            binding = active.binding
            if binding.id and active.tooltip and active.enabled:
                area, _, _ = binding.id.partition(".")
                run = partial(self.app.run_action, binding.action, active.node)
                key = self.app.get_key_display(binding)
                yield f"{area}: {binding.description}", run, f"{key}  {active.tooltip}"
