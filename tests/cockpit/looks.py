"""How a screen may have to look: pictures are taken of every screen in each look and size."""

from __future__ import annotations

import pytest

LOOKS = pytest.mark.parametrize(
    "look",
    [{"theme": "cockpit-dark"}, {"theme": "cockpit-light"}, {"ascii_only": True}],
    ids=["dark", "light", "ascii"],
)
"""Options of the app: `cockpit(**look)`."""

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
"""Columns and lines of the terminal: the least that must do, and one with room."""
