"""An interactive engine without a project: shows what a test gives it and keeps what viewers say."""

from __future__ import annotations

import math
import queue
import threading

from engines.contract import scenes
from engines.contract.scenes import Action, Box, Gauge, Image, Line, Panel, Scene, Span, Strip, Text, View, Words
from engines.tasks.scene_server import SceneServer
from tests.support.fake_run import FakeRun

SEATS: tuple[str, ...] = ()
"""Of a live session; a test may put some here."""
ACTIONS = [
    Action("play", "space", "play", "Play or pause"),
    Action("next", "n", "next ≠", "To the next difference"),
    Action("end", "end", "end", "To the end", minor=True),
]


def scene(position: int = 411, *, playing: bool = True, note: str = "seeded from game 7") -> Scene:
    """Every kind of item and row; what moves depends on `position`."""
    around = [(60 * math.cos(k / 8), 40 + 30 * math.sin(k / 8)) for k in range(51)]
    shades = bytes(value for row in range(6) for column in range(8) for value in (30 * column, 40 * row, 120))
    return Scene(
        title="Battlefield", position=position, total=1000, playing=playing, speed=2.0, note=note,
        view=View(
            (-100, -50), (100, 110),
            [
                Line([(-68, 0), (68, 0), (60, -20)], "plain"), Line(around, "quiet"),
                Box(-40 + position % 7, 0, 12, 20, "first"), Box(20, 30, 10, 16, "second", filled=True),
                Text(-34, 28, "P1 Fox", "first"), Text(25, 54, "P2 Falco", "second"),
                Image(60, 60, 36, 40, 8, shades),
            ],
            title="the stage",
        ),
        panels=[
            Panel("P1", [
                Words([Span("47 %", "first"), Span("  LASER ", "plain"), Span("345", "quiet")]),
                Gauge(label="shield", value=0.7, kind="first"),
                Gauge(
                    label="attack", value=0.3, mark=0.5, signs=[Span("●", "first"), Span("·", "faint")], differs=True
                ),
            ]),
            Panel("Look", [Gauge(label="yaw", value=-0.4, other=0.2, low=-1.0)], note="◆ player"),
        ],
        strip=Strip("differ", [0.0, 0.1, 0.9, 0.0, 0.4] * 8),
        actions=ACTIONS,
    )  # fmt: skip


class FakeScenes:
    """Serves the socket of a fake run from a thread: `show` scenes, look at `inputs`."""

    def __init__(self, fake: FakeRun, first: Scene | None = None) -> None:
        self._folder = fake.run.path
        self._shown: queue.Queue[Scene] = queue.Queue()
        self._closing = threading.Event()
        self._open = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.inputs: list[scenes.Input] = []
        self._heard = threading.Event()
        if first is not None:
            self.show(first)

    def show(self, scene: Scene) -> None:
        self._shown.put(scene)

    def first_input(self) -> scenes.Input:
        """What a viewer said first, waited for."""
        assert self._heard.wait(120.0), "no viewer said anything"
        return self.inputs[0]

    def __enter__(self) -> FakeScenes:
        self._thread.start()
        self._open.wait()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._thread.join()

    def _serve(self) -> None:
        with SceneServer(self._folder, SEATS) as server:
            self._open.set()
            while not self._closing.is_set():
                while not self._shown.empty():
                    server.show(self._shown.get())
                self.inputs += server.exchange(0.02)
                if self.inputs:
                    self._heard.set()
