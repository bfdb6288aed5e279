"""What an interactive engine and its viewers say to each other, one JSON object a line, through a Unix socket.

The engine sends *scenes*, each of them whole: a viewer that comes late or skips some needs nothing but the newest. A
viewer sends *inputs*. The viewer knows no project: it draws what a scene holds and offers the actions that it names.
World coordinates are the project's own; x grows to the right and y upwards.

A live session has *seats* (`p1`, `p2`). A viewer says `Join` once, at the beginning, and hears in `Seated` which seat
it has; whoever has none watches, and what it presses is ignored. The player of a recording has no seats: all may press.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SOCKET = "play.sock"
"""Name of the socket in the run directory."""
LONGEST_SCENE = 1 << 20
LONGEST_INPUT = 1 << 12
"""Bytes of a line; whoever sends a longer one is cut off."""

Kind = Literal["plain", "quiet", "faint", "accent", "first", "second", "good", "bad"]
"""What something is, from which the viewer takes its colour; `first` and `second` are the two that are compared."""
Point = tuple[float, float]


class Line(msgspec.Struct, tag="line", frozen=True):
    """Straight lines from point to point."""

    points: list[Point]
    kind: Kind = "plain"


class Box(msgspec.Struct, tag="box", frozen=True):
    """A rectangle from its lower left corner."""

    x: float
    y: float
    width: float
    height: float
    kind: Kind = "plain"
    filled: bool = False


class Text(msgspec.Struct, tag="text", frozen=True):
    """One line of text whose middle is at (x, y)."""

    x: float
    y: float
    text: str
    kind: Kind = "plain"


class Image(msgspec.Struct, tag="image", frozen=True):
    """A small picture over a rectangle: `pixels` is RGB, a byte each, row by row from the top."""

    x: float
    y: float
    width: float
    height: float
    columns: int
    pixels: bytes


class View(msgspec.Struct, frozen=True):
    """The part of the world that is in sight, and what is in it, drawn in this order."""

    low: Point
    high: Point
    items: list[Line | Box | Text | Image] = []
    title: str = ""


class Span(msgspec.Struct, frozen=True):
    """Some words of one kind."""

    text: str
    kind: Kind = "plain"


class Words(msgspec.Struct, tag="words", frozen=True):
    """A row of text."""

    spans: list[Span]


class Gauge(msgspec.Struct, tag="gauge", frozen=True, kw_only=True):
    """A row with a value between `low` and `high` as a bar, from zero or from `low` where zero is outside."""

    label: str
    value: float | None
    """None where it is not known: the bar is empty."""
    other: float | None = None
    """A second value to compare with, shown as a point on the bar."""
    mark: float | None = None
    """A place on the bar, such as a threshold."""
    low: float = 0.0
    high: float = 1.0
    signs: list[Span] = []
    """Short signs between label and bar."""
    kind: Kind = "second"
    differs: bool = False
    """Worth a look: what is compared is not the same."""


class Panel(msgspec.Struct, frozen=True):
    """Rows under a title, beside the view."""

    title: str
    rows: list[Words | Gauge]
    note: str = ""


class Strip(msgspec.Struct, frozen=True):
    """What lies where along the whole session: a level from 0 to 1 for each of equally long stretches."""

    label: str
    levels: list[float]


class Action(msgspec.Struct, frozen=True):
    """Something the engine does when asked to. `key` is a key's name as Textual has it, or several with commas."""

    id: str
    key: str
    label: str
    about: str = ""
    """One sentence for the help; `label` where empty."""
    minor: bool = False
    """In the help alone, not in the row of keys."""


class Scene(msgspec.Struct, tag="scene", kw_only=True):
    """Everything a viewer shows at one moment."""

    title: str
    position: int = 0
    total: int = 0
    """Positions there are; 0 where that is open. Of a live session those made so far."""
    live: bool = False
    """The end is open: playing at the last position makes a new one."""
    unit: str = "frame"
    playing: bool = False
    speed: float = 1.0
    reached: float = 0.0
    """The speed that the engine keeps up with; 0 where that is not known."""
    viewers: list[str] = []
    """Seats that are taken."""
    note: str = ""
    """A few words on the mode it is in."""
    view: View
    panels: list[Panel] = []
    strip: Strip | None = None
    actions: list[Action] = []


class Seated(msgspec.Struct, tag="seated", frozen=True):
    """Which seat a viewer has, empty where it watches; then `note` is a sentence for the user that says why."""

    viewer: str
    note: str = ""


class Join(msgspec.Struct, tag="join", frozen=True):
    """Take a seat: this one, or the first that is free where empty."""

    seat: str = ""


class Press(msgspec.Struct, tag="press", frozen=True):
    """Do the action with this id."""

    action: str
    viewer: str = ""
    """The seat it comes from. The server fills it in, whatever the viewer says."""


class Seek(msgspec.Struct, tag="seek", frozen=True):
    """Go to a position, or to the nearest there is."""

    position: int


class Play(msgspec.Struct, tag="play", frozen=True):
    """Play or pause; the speed stays as it is where none is given."""

    playing: bool
    speed: float | None = None


class End(msgspec.Struct, tag="end", frozen=True):
    """Leave; the engine ends if nobody else looks."""


Input = Join | Press | Seek | Play | End
Output = Scene | Seated

scene_decoder: msgspec.json.Decoder[Scene] = msgspec.json.Decoder(Scene)
output_decoder: msgspec.json.Decoder[Output] = msgspec.json.Decoder(Output)
input_decoder: msgspec.json.Decoder[Input] = msgspec.json.Decoder(Input)
_encoder = msgspec.json.Encoder()


def encode(message: Output | Input) -> bytes:
    """`message` as one line with its newline. Raises `ValueError` for a scene longer than a viewer takes."""
    line = _encoder.encode(message) + b"\n"
    if len(line) > LONGEST_SCENE:
        raise ValueError(f"a scene has {len(line):,} bytes, expected at most {LONGEST_SCENE:,}")
    return line
