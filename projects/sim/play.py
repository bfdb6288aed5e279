"""`cockpit play RUN`: a drive frame by frame, with what the run's exported model says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Box, Gauge, Image, Kind, Line, Panel, Scene, Span, Strip, View, Words
from engines.tasks.arguments import as_struct
from engines.tasks.interactive import IDLE_MINUTES, InteractiveContext, play
from projects.sim.decided import Decided, Windows, open_recording
from projects.sim.drives import Bytes, Drive
from projects.sim.inference import load
from projects.sim.labels import ABSENT, HIGH, LABELS, TELEMETRY
from projects.sim.opened import said_of_models

STRETCHES = 200
"""Of the timeline."""
COLUMNS, ROWS = 64, 48
"""Largest picture that is sent."""
ASPECT = 0.75
"""Height of the view's picture where the model sees none, by its width."""
RISK_KINDS: tuple[Kind, ...] = ("good", "plain", "accent", "bad")
ACTIONS = (
    Action("next", "n", "next alarm", "To the next frame on which an alarm begins"),
    Action("previous", "N", "prev alarm", "To the alarm before"),
    Action("moved", "o", "what moved it", "How much each segment and the telemetry add to the chance of high risk"),
)


class _Order(msgspec.Struct):
    run: Path
    recording: str = ""
    idle_minutes: float = IDLE_MINUTES


def step_through(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Decide on every window of the recording, then show it until it is ended.

    arguments: run (directory of a run with an export), recording (a drive, or a log as `cockpit data parse` takes; the
    run's first drive with validation windows where empty), idle_minutes (10). Raises `UserError` for bad arguments,
    `DataError` for what cannot be read.
    """
    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    with said_of_models():
        network, config = load(run.export)
        drive, features = open_recording(run, order.recording, config, context)
        windows = Windows(network, config["model"], drive, features)
        decided = windows.decide(lambda done, total: context.progress(done, total, "frames decided"))
    context.log(f"{drive.name}: {len(drive)} frames of a {drive.about.source} log")
    play(SimSession(drive, windows, decided, float(config["thresholds"]["risk_high"])), context, order.idle_minutes)


class SimSession:
    """A drive with what the model says of it, an `engines.tasks.interactive.Session`."""

    actions = ACTIONS

    def __init__(self, drive: Drive, windows: Windows, decided: Decided, threshold: float) -> None:
        self.total, self.rate = len(drive), drive.rate
        self._drive, self._windows, self._decided, self._threshold = drive, windows, decided, threshold
        alarms = np.nan_to_num(decided.high) >= threshold
        self._begins = np.flatnonzero(alarms & ~np.concatenate([[False], alarms[:-1]]))
        self._scale = np.abs(drive.telemetry).max(axis=0).clip(min=1e-6)
        self._explains = False

    def act(self, action: str, position: int) -> int:
        if action == "moved":
            self._explains = not self._explains
        elif action == "next" and len(later := self._begins[self._begins > position]):
            return int(later[0])
        elif action == "previous" and len(earlier := self._begins[self._begins < position]):
            return int(earlier[-1])
        return position

    def scene(self, position: int) -> Scene:
        panels = [self._chances("risk", position), self._chances("action", position), self._chances("reason", position)]
        alarms = len(self._begins)
        panels.insert(1, self._moved(position) if self._explains else self._telemetry(position))
        return Scene(
            title=self._drive.name,
            note=f"{alarms} alarm{'s' * (alarms != 1)} · {self._drive.times[position] - self._drive.times[0]:.1f} s",
            view=self._view(position),
            panels=panels,
            strip=Strip(f"P(high), alarm from {self._threshold:.2f}", self._levels()),
        )

    def _levels(self) -> list[float]:
        """The largest P(high) in each stretch of the drive."""
        parts = np.array_split(np.nan_to_num(self._decided.high), min(STRETCHES, self.total))
        return [round(float(part.max()), 3) for part in parts]

    def _view(self, position: int) -> View:
        """The frame, and below it P(high) over the whole drive with threshold, truth and where it is."""
        frame = None if self._drive.frames is None else smaller(self._drive.frames[position])
        height = ASPECT if frame is None else frame.shape[0] / frame.shape[1]
        items: list[Any] = []
        if frame is not None:
            items.append(Image(0.0, 0.0, 1.0, height, frame.shape[1], frame.tobytes()))
        items += self._curve(position, low=-0.3 * height, high=-0.05 * height)
        risk = self._likeliest("risk", position)
        said = f"risk {risk} · {self._likeliest('reason', position)} · {self._likeliest('action', position)}"
        return View(
            (0.0, -0.3 * height), (1.0, height), items, title=said if risk else "too few frames before this one"
        )

    def _curve(self, position: int, low: float, high: float) -> list[Any]:
        width, tall = 1 / self.total, high - low
        truth = self._drive.labels[:, 0] == HIGH
        edges = np.flatnonzero(np.diff(np.concatenate([[0], truth.astype(np.int8), [0]])))
        items: list[Any] = [
            Box(float(begin * width), low, float((end - begin) * width), tall, "faint", filled=True)
            for begin, end in edges.reshape(-1, 2)
        ]
        known = np.flatnonzero(~np.isnan(self._decided.high))
        shown = known[:: max(1, len(known) // STRETCHES)]
        points = [(round(float(k * width), 4), round(float(low + tall * self._decided.high[k]), 4)) for k in shown]
        level = low + tall * self._threshold
        items.append(Line([(0.0, level), (1.0, level)], "quiet"))
        items.append(Line(points, "second"))
        items.append(Line([(position * width, low), (position * width, high)], "accent"))
        return items

    def _likeliest(self, task: str, position: int) -> str:
        chances = self._decided.chances[task][position]
        return "" if np.isnan(chances[0]) else LABELS[task][int(chances.argmax())]

    def _chances(self, task: str, position: int) -> Panel:
        chances, truth = self._decided.chances[task][position], self._truth(task, position)
        best = -1 if np.isnan(chances[0]) else int(chances.argmax())
        rows: list[Words | Gauge] = []
        for place, name in enumerate(LABELS[task]):
            signs = [
                Span("◆", "first") if place == truth else Span("·", "faint"),
                Span("●", "second") if place == best else Span("·", "faint"),
            ]
            alarm = task == "risk" and place == HIGH
            rows.append(
                Gauge(
                    label=name, value=None if best < 0 else round(float(chances[place]), 3), signs=signs,
                    mark=round(self._threshold, 3) if alarm else None,
                    kind=RISK_KINDS[place] if task == "risk" else "second",
                    differs=best >= 0 and truth != ABSENT and truth != best and place in (truth, best),
                )
            )  # fmt: skip
        return Panel(f"{task}: ◆ truth ● model" if truth != ABSENT else f"{task}: no truth", rows)

    def _truth(self, task: str, position: int) -> int:
        return int(self._drive.labels[position, list(LABELS).index(task)])

    def _telemetry(self, position: int) -> Panel:
        rows: list[Words | Gauge] = []
        for place, name in enumerate(TELEMETRY):
            absent = name in self._drive.about.absent
            value = None if absent else round(float(self._drive.telemetry[position, place]), 3)
            scale = round(float(self._scale[place]), 3)
            rows.append(Gauge(label=name, value=value, low=-scale, high=scale, kind="plain"))
        derived = ", ".join(self._drive.about.derived)
        return Panel("telemetry", rows, note=f"derived: {derived}" if derived else "")

    def _moved(self, position: int) -> Panel:
        if np.isnan(self._decided.high[position]):
            return Panel("what moved P(high)", [], note="too few frames before this one")
        rows: list[Words | Gauge] = [
            Gauge(label=name, value=round(change, 3), low=-1.0, kind="bad" if change > 0 else "good")
            for name, change in self._windows.moved(position).items()
        ]
        return Panel("what moved P(high)", rows, note="against its mean in training")


def smaller(frame: Bytes) -> Bytes:
    """A picture of at most 48 × 64 pixels, each the mean of what it covers."""
    height, width = frame.shape[:2]
    scale = max(1.0, height / ROWS, width / COLUMNS)
    rows, columns = (_edges(size, scale) for size in (height, width))
    summed = np.add.reduceat(np.add.reduceat(frame.astype(np.float64), rows[:-1], axis=0), columns[:-1], axis=1)
    area = np.diff(rows)[:, None, None] * np.diff(columns)[None, :, None]
    pixels: Bytes = (summed / area).astype(np.uint8)
    return pixels


def _edges(size: int, scale: float) -> NDArray[np.int64]:
    return np.linspace(0, size, max(1, int(size / scale)) + 1).astype(np.int64)
