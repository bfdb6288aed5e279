"""The cockpit's own dark theme: one amber accent, blue train, orange validation, violet edits, the rest quiet."""

from __future__ import annotations

from textual.theme import Theme

VARIABLES = {
    "train": "#58a6ff",
    "train-faint": "#21466f",
    "validation": "#f0883e",
    "validation-faint": "#6b4224",
    "edit": "#bc8cff",
    "good": "#3fb950",
    "bad": "#f85149",
    "best": "#e3b341",
    "name": "#39c5cf",
    "resume": "#39c5cf",
    "quiet": "#7d8590",
    "faint": "#484f58",
    "line": "#30363d",
}
"""What the style sheets use beside Textual's own variables; every other theme gets these values too."""

THEME = Theme(
    name="cockpit",
    primary="#e3b341",
    secondary="#58a6ff",
    accent="#e3b341",
    warning="#f0883e",
    error="#f85149",
    success="#3fb950",
    foreground="#c9d1d9",
    background="#0d1117",
    surface="#0d1117",
    panel="#161b22",
    dark=True,
    variables=VARIABLES
    | {
        "footer-background": "#161b22",
        "footer-item-background": "#161b22",
        "footer-key-foreground": "#e3b341",
        "footer-description-foreground": "#c9d1d9",
        "block-cursor-background": "#e3b341",
        "block-cursor-foreground": "#0d1117",
        "scrollbar": "#30363d",
        "scrollbar-hover": "#484f58",
        "scrollbar-active": "#e3b341",
        "scrollbar-background": "#0d1117",
        "scrollbar-background-hover": "#0d1117",
        "scrollbar-background-active": "#0d1117",
    },
)
