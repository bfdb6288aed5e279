"""The words above the charts: what is shown, and what its lines and signs mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content

from cockpit.core.plot.axis import place_name
from cockpit.core.plot.charts_view import USUAL_SMOOTHING, ChartsView
from cockpit.core.plot.glyphs import Glyphs
from cockpit.core.plot.groups import RUN_ROLES
from cockpit.core.plot.lines import LOOKS, Member
from cockpit.core.series import Mark
from cockpit.core.text import plain
from cockpit.core.times import zone

NAMES = {"checkpoint": "saved"}
"""Shorter words: at 80 columns the line has room for all."""
COLOURS = {"step": "quiet", "test": "good", "checkpoint": "quiet"}
"""Of styles that are not called like their colour."""


def weights_at(marks: Sequence[tuple[float, str]], cursor: float | None) -> str:
    """The loss weights in force at the cursor, of `marks` with their places; empty where none was ever changed."""
    changes = sorted((place, weights) for place, weights in marks if weights)
    if cursor is None or not changes:
        return ""
    return next((weights for place, weights in reversed(changes) if place <= cursor), "weights as configured")


def state_words(view: ChartsView) -> list[str]:
    """How the charts are drawn: `by step`, `smoothing 0.6`, `at step 412`; nothing of the usual smoothing."""
    look, axis, cursor = view.look, view.look.axis, view.cursor
    words = [f"by clock ({zone(view.viewport.end)})" if axis == "clock" else f"by {axis}"]
    if look.smoothing != USUAL_SMOOTHING:
        words.append(f"smoothing {look.smoothing}" if look.smoothing else "raw")
    words += ["log x"] if look.log_x else []
    words += ["log"] if look.log else []
    words += ["without outliers"] if look.trimmed else []
    words += [f"{plain(name)} {view.range_text(name).replace(' ', ' to ')}" for name in view.shown(view.ranges)]
    start, end = (place_name(axis, x, log=look.log_x) for x in (view.viewport.start, view.viewport.end))
    words += [] if view.viewport.whole else [f"{start} to {end}"]
    return words + ([f"at {place_name(axis, cursor, log=look.log_x)}"] if cursor is not None else [])


def legend_words(
    charts: Mapping[str, Sequence[Member]], marks: Sequence[Mark], glyphs: Glyphs, names: Mapping[str, str]
) -> Content:
    """The looks of lines and the signs on the axis, of those that are there; `names` of roles where not their own.

    Runs that have no name here are named elsewhere.
    """
    legend: list[tuple[str, str]] = []
    roles: set[str] = {role for members in charts.values() for role, _ in members}
    roles -= {"score", *RUN_ROLES} - set(names)  # the chart of the score is called so
    if {"train", "logged"} <= roles:
        roles = roles - {"logged"} | {"step"}
    for role, (style, dash) in LOOKS.items():
        if role in roles:
            legend.append((f"{glyphs.sample(style, dash)} ", f"${COLOURS.get(style, style)}"))
            legend.append((f"{plain(names.get(role, role))}  ", "$quiet"))
    for kind in dict.fromkeys(mark.kind for mark in marks):
        legend.append((f"{glyphs.signs[kind]} ", f"${COLOURS.get(kind, kind)}"))
        legend.append((f"{NAMES.get(kind, kind)}  ", "$quiet"))
    return Content.assemble(*legend)
