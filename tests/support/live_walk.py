"""A small live session: two walkers on a line, each going the way that its viewer pressed last. And a project of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engines.contract.scenes import Action, Box, Image, Line, Panel, Press, Scene, Span, Text, View, Words
from engines.contract.spec import Spec, Task
from engines.tasks.interactive import InteractiveContext
from engines.tasks.live import play_live

SPEC = Spec(
    name="walk", title="Two walkers", config="", project="", columns=(), heads=(), data_files=None,
    tasks={"play": Task("tests.support.live_walk:walk", "walk about")}, recordings="folder",
)  # fmt: skip
WAYS = {"left": -1, "stand": 0, "right": 1}


class State(NamedTuple):
    step: int = 0
    places: tuple[int, int] = (0, 0)
    ways: tuple[int, int] = (0, 0)


class Walk:
    """A `LiveSession`; a walker without a viewer stands still."""

    rate = 32.0
    speeds, speed = (0.1, 0.5, 1.0), 1.0
    viewers = ("p1", "p2")
    controls = (
        Action("left", "left", "left", "Go left"),
        Action("right", "right", "right", "Go right"),
        Action("stand", "down", "stand", "Stand still"),
    )
    actions = (Action("count", "c", "count", "Count the states on the tape"),)

    def __init__(self) -> None:
        self.counted = 0
        self.begun = 0

    def begin(self) -> State:
        self.begun += 1
        return State()

    def step(self, state: State, presses: Sequence[Press], viewers: Sequence[str]) -> State:
        ways = dict(zip(self.viewers, state.ways, strict=True))
        for press in presses:
            ways[press.viewer] = WAYS[press.action]
        going = tuple(ways[viewer] if viewer in viewers else 0 for viewer in self.viewers)
        first, second = (place + way for place, way in zip(state.places, going, strict=True))
        return State(state.step + 1, (first, second), (going[0], going[1]))

    def act(self, press: Press, tape: Sequence[State]) -> None:
        self.counted = len(tape)

    def scene(self, state: State) -> Scene:
        first, second = (place % 40 for place in state.places)
        walkers: list[Line | Box | Text | Image] = [
            Box(first, 0, 1, 1, "first"), Text(first, 1, "p1", "first"),
            Box(second, 2, 1, 1, "second"), Text(second, 3, "p2", "second"),
        ]  # fmt: skip
        words = " ".join(f"{name} {place}" for name, place in zip(self.viewers, state.places, strict=True))
        return Scene(
            title="a walk", unit="step", note=words, view=View((0, 0), (40, 4), walkers),
            panels=[Panel("Walkers", [Words([Span(words)])])],
        )  # fmt: skip


def walk(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """The project's `play`."""
    play_live(Walk(), context)


def install(folder: Path) -> None:
    """Make the project known to whoever has `folder` on its path, as an installed package would be."""
    info = folder / "walk-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: walk\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[cockpit.projects]\nwalk = tests.support.live_walk:SPEC\n")
