"""The words above the charts: what is shown, and what its lines and signs mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from cockpit.core.plot.axis import place_name
from cockpit.core.plot.glyphs import Glyphs
from cockpit.core.plot.lines import LOOKS, Look, Member
from cockpit.core.plot.viewport import Viewport
from cockpit.core.run_metrics import SIGNS, Mark
from cockpit.core.text import plain

NAMES = {"step": "every step"}
COLOURS = {"step": "quiet", "test": "good", "checkpoint": "quiet"}
"""Of styles that are not called like their colour."""


def title_line(title: str, state: Sequence[str], colours: Mapping[str, str]) -> Text:
    """The log's name comes last: where there is no room for all, the person knows it."""
    return Text.assemble(
        ("◢ cockpit", f"bold {colours['accent']}"), ("   Charts   ", f"bold {colours['foreground']}"),
        (" · ".join(state), colours["foreground"]), (f"   {plain(title)}", colours["quiet"]),
    )  # fmt: skip


def state_words(look: Look, view: Viewport, cursor: float | None) -> list[str]:
    """How the charts are drawn: `by step`, `smoothing 0.9`, `at step 412`."""
    words = [f"by {look.axis}"]
    words += [f"smoothing {look.smoothing}"] if look.smoothing else []
    words += ["log"] if look.log else []
    words += [] if view.whole else [f"{place_name(look.axis, view.start)} to {place_name(look.axis, view.end)}"]
    return words + ([f"at {place_name(look.axis, cursor)}"] if cursor is not None else [])


def legend_line(
    charts: Mapping[str, Sequence[Member]], marks: Sequence[Mark], glyphs: Glyphs, colours: Mapping[str, str]
) -> Text:
    """The looks of lines and the signs on the axis, of those that are there."""
    legend = Text()
    roles: set[str] = {role for members in charts.values() for role, _ in members}
    if {"train", "logged"} <= roles:
        roles = roles - {"logged"} | {"step"}
    for role, (style, dash) in LOOKS.items():
        if role in roles:
            legend.append(f"{glyphs.samples[dash]} ", colours[COLOURS.get(style, style)])
            legend.append(f"{NAMES.get(role, role)}  ", colours["quiet"])
    for kind in dict.fromkeys(mark.kind for mark in marks):
        legend.append(f"{SIGNS[kind]} ", colours[COLOURS.get(kind, kind)])
        legend.append(f"{kind}  ", colours["quiet"])
    return legend
