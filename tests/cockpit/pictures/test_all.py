"""No screen without pictures; and the look changed while the app runs is the look it would have begun with."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from cockpit import screens
from cockpit.app import CockpitApp
from tests.cockpit.driving import text, until
from tests.cockpit.looks import LOOKS, SIZES, Pictures
from tests.support.fake_run import FakeRun

ACCEPTED = Path(__file__).with_name("__snapshots__")


def shown_screens() -> Iterator[type[Screen[Any]]]:
    """Every class of a screen or dialog with a style of its own; what several have in common has none."""
    for module in pkgutil.iter_modules(screens.__path__, f"{screens.__name__}."):
        for found in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(found, type)
                and issubclass(found, Screen)
                and found.__module__ == module.name
                and found.CSS_PATH is not Screen.CSS_PATH
            ):
                yield found


def test_every_screen_has_a_picture_in_every_size_and_look() -> None:
    sizes = SIZES.kwargs["ids"]
    taken = [path.name for path in ACCEPTED.rglob("*.svg")]
    missing = [
        f"{screen.__name__} {size} {look}"
        for screen, size, look in product(shown_screens(), sizes, LOOKS)
        if not any(f"[{size}][{screen.__name__}-" in name and name.endswith(f"-{look}].svg") for name in taken)
    ]
    assert not missing, "no picture of " + ", ".join(missing)


@pytest.mark.parametrize("look", ["light", "ascii"])
async def test_a_look_changed_while_it_runs_is_as_if_it_had_begun_so(
    pictures: Pictures, cockpit: Callable[..., CockpitApp], fake: FakeRun, at: Callable[[float], None], look: str
) -> None:
    at(60)
    fake.begin().started().epochs(1, 2, best=2).end("finished")
    for first in (look, "dark"):
        theme, ascii_only = LOOKS[first]
        async with cockpit(open_run=fake.run, theme=theme, ascii_only=ascii_only).run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda: "best 2" in text(pilot) and "5.4" in text(pilot))
            await pictures.take(pilot, looks=[look])  # both have the same accepted one
