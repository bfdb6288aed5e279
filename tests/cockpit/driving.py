"""Driving the app in tests: waiting for a state, reading the screen, its keys, and what was ordered."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.pilot import Pilot

from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from tests.support.fake_run import FakeRun

PATIENCE = 120.0


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain; the screen:\n" + text(pilot)
        await pilot.pause(0.05)  # reading the screen renders all of it
    await pilot.pause()


def shows(pilot: Pilot[None], *words: str) -> bool:
    """Whether all of that is on the screen."""
    shown = text(pilot)
    return all(word in shown for word in words)


def text(pilot: Pilot[None]) -> str:
    """What is on the screen, line by line."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def keys(pilot: Pilot[None]) -> dict[str, bool]:
    """What the footer offers, and whether it can be used now."""
    return {active.binding.description: active.enabled for active in pilot.app.screen.active_bindings.values()}


def commands_of(fake: FakeRun) -> list[cmd.Command]:
    return RecordFollower(fake.run.commands, cmd.decoder).poll()
