"""Two themes, dark and light: one amber accent, blue train, orange validation, violet edits, the rest quiet.

Text stands out from its background by at least 4.5 : 1, marks and lines by 3 : 1 (WCAG 2.2, 1.4.3 and 1.4.11); frames
of panes do not, they only divide. What a chart tells by colour is told apart with any colour vision; see the tests.
"""

from __future__ import annotations

from textual.color import Color
from textual.theme import Theme

_DARK = {
    "train": "#90b6fe",
    "train-faint": "#5a78ab",
    "validation": "#db6642",
    "validation-faint": "#9c5a44",
    "edit": "#8c73eb",
    "good": "#3fb950",
    "bad": "#f85149",
    "best": "#e8b33f",
    "name": "#39c5cf",
    "resume": "#30f7ef",
    "quiet": "#8b949e",
    "faint": "#646d78",
    "haze": "#434b55",
    "line": "#30363d",
}
_LIGHT = {
    "train": "#2b3f88",
    "train-faint": "#7484bd",
    "validation": "#8e2014",
    "validation-faint": "#bd7467",
    "edit": "#a331cf",
    "good": "#116d2b",
    "bad": "#c4161c",
    "best": "#946200",
    "name": "#0b6770",
    "resume": "#346865",
    "quiet": "#57606a",
    "faint": "#818a94",
    "haze": "#b9c1ca",
    "line": "#d0d7de",
}

RUN_COLOURS = {
    "dark": ("#8ea7f7", "#ba8d7a", "#84fdad", "#ffcce3", "#b2b900", "#8947ea", "#1a7c7d", "#d02017"),
    "light": ("#3c25c0", "#825846", "#3c997e", "#461f36", "#8b881b", "#8084b2", "#1f6873", "#690000"),
}
"""Of up to eight runs side by side; each has a marker and a dash of its own as well. Whatever the colour vision, the
two nearest differ by 18 (dark) and 16 (light), CIEDE2000; of what the charts mark by 14 and 11."""


BACKGROUND = {"dark": "#0d1117", "light": "#fafbfc"}
BAND = 0.62
"""Share of the background in the colour of the band around a line."""


def variables(*, dark: bool) -> dict[str, str]:
    """What the style sheets use beside Textual's own variables, `$run-1` to `$run-8` among it; for every theme."""
    look = "dark" if dark else "light"
    runs = {f"run-{place}": colour for place, colour in enumerate(RUN_COLOURS[look], 1)}
    background = Color.parse(BACKGROUND[look])
    bands = {f"{name}-band": Color.parse(colour).blend(background, BAND).hex for name, colour in runs.items()}
    return (_DARK if dark else _LIGHT) | runs | bands


def _theme(name: str, *, dark: bool, foreground: str, background: str, panel: str) -> Theme:
    ours = variables(dark=dark)
    footer = {f"footer-{part}": panel for part in ("background", "item-background")}
    rest = {f"scrollbar-background{state}": background for state in ("", "-hover", "-active")}
    return Theme(
        name=name, dark=dark, foreground=foreground, background=background, surface=background, panel=panel,
        primary=ours["best"], accent=ours["best"], secondary=ours["train"],
        warning=ours["validation"], error=ours["bad"], success=ours["good"],
        variables=ours | footer | rest | {
            "footer-key-foreground": ours["best"],
            "footer-description-foreground": foreground,
            "block-cursor-background": ours["best"],
            "block-cursor-foreground": background,
            "scrollbar": ours["line"],
            "scrollbar-hover": ours["faint"],
            "scrollbar-active": ours["best"],
        },
    )  # fmt: skip


THEMES = {
    theme.name: theme
    for theme in (
        _theme("cockpit-dark", dark=True, foreground="#c9d1d9", background=BACKGROUND["dark"], panel="#161b22"),
        _theme("cockpit-light", dark=False, foreground="#24292f", background=BACKGROUND["light"], panel="#eceff2"),
    )
}
DEFAULT = "cockpit-dark"
