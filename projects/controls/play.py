"""`cockpit play RUN`: a recording frame by frame, the player's controls beside those of the run's exported policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Gauge, Kind, Panel, Scene, Span, Strip, View, Words
from engines.tasks.arguments import as_struct
from engines.tasks.interactive import IDLE_MINUTES, InteractiveContext, play
from projects.controls.decisions import Decisions, decide, differences, judged, slots
from projects.controls.exported import read_exported
from projects.controls.layout import BINARY, CONTROL_NAMES, CURSOR, LOOK, SCREEN_OPEN
from projects.controls.policy import ControlPolicy
from projects.controls.recordings import Recording, read_recording, same_rate
from projects.controls.resample import resampled
from projects.controls.split import read_split
from projects.controls.stick_figure import bounds, figure

STRETCHES = 200
"""Of the timeline."""
LABELS = [CONTROL_NAMES[column].removeprefix("move_").removeprefix("inv_").replace("_", " ") for column in BINARY]
ACTIONS = (
    Action("next", "n", "next ≠", "To the next frame on which player and model disagree"),
    Action("previous", "N", "prev ≠", "To the disagreement before"),
    Action("history", "h", "history", "What the model sees as the past: what the player did, or its own decisions"),
)
HISTORIES = ("the player's", "its own")
"""What the model sees as past controls: teacher-forced, as in training, or self-fed, as in the game."""


class _Order(msgspec.Struct):
    run: Path
    recording: str = ""
    idle_minutes: float = IDLE_MINUTES


def step_through(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Decide on every frame of the recording, once with either history, then show it until it is ended.

    arguments: run (directory of a run with an export), recording (file; the run's first validation session where
    empty), idle_minutes (10). Raises `UserError` for bad arguments, `DataError` for what cannot be read.
    """
    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    policy = ControlPolicy.load(run.export)
    config = read_exported(run.export)
    recording = read_recording(Path(order.recording)) if order.recording else _first_validation_session(run)
    if config.fps is not None and not same_rate(recording.fps, config.fps):
        context.log(
            f"{recording.name}: {recording.fps:.4g} frames a second are brought to the model's {config.fps:.4g}"
        )
        recording = resampled(recording, config.fps)
    total, done = 2 * len(recording), 0

    def tick() -> None:
        nonlocal done
        done += 1
        context.progress(done, total, "frames decided")

    context.log(f"{recording.name}: {len(recording)} frames, {recording.session_type}")
    decisions = [decide(policy, recording, forced=forced, tick=tick) for forced in (True, False)]
    session = ControlsSession(recording, decisions, np.concatenate([config.action, config.inv]))
    play(session, context, order.idle_minutes)


def _first_validation_session(run: RunDirectory) -> Recording:
    """What the model was not trained on. Raises `DataError` when the run's data is gone."""
    settings: Any = load_config(run.config).settings
    try:
        return read_split(settings.data)[1][0]
    except DataError as error:
        raise DataError(f"{error} Or name a recording: cockpit play RUN --recording FILE.") from None


class ControlsSession:
    """A recording with what the policy decided on it, an `engines.tasks.interactive.Session`.

    Args:
        recording: the session.
        decisions: with the player's history and with its own.
        thresholds: (15,) of the on-off controls.
    """

    actions = ACTIONS

    def __init__(self, recording: Recording, decisions: list[Decisions], thresholds: NDArray[np.float64]) -> None:
        self.total = len(recording)
        self.rate = recording.fps
        self._recording, self._decisions, self._thresholds = recording, decisions, thresholds
        self._differences = [differences(recording, one, thresholds) for one in decisions]
        self._places = [np.flatnonzero(one.any(axis=1)) for one in self._differences]
        self._judged = judged(recording)
        self._slots = slots(recording.controls)
        self._corners = bounds(recording.frames)
        self._history = 0

    def act(self, action: str, position: int) -> int:
        places = self._places[self._history]
        if action == "history":
            self._history = 1 - self._history
        elif action == "next" and len(later := places[places > position]):
            return int(later[0])
        elif action == "previous" and len(earlier := places[places < position]):
            return int(earlier[-1])
        return position

    def scene(self, position: int) -> Scene:
        recording, differ = self._recording, self._places[self._history]
        low, high = self._corners
        screen = "a screen is open" if recording.state[position, SCREEN_OPEN] > 0 else "in the game"
        return Scene(
            title=recording.name,
            note=f"{len(differ)} differ · {HISTORIES[self._history]} history",
            view=View(low, high, list(figure(recording.frames[position])), title=f"{recording.session_type}, {screen}"),
            panels=[self._keys(position), self._values(position)],
            strip=Strip("player and model disagree", self._levels()),
        )

    def _levels(self) -> list[float]:
        """The share of disagreement in each stretch of the session."""
        any_differs = self._differences[self._history].any(axis=1)
        parts = np.array_split(any_differs, min(STRETCHES, self.total))
        return [round(float(part.mean()), 3) for part in parts]

    def _keys(self, position: int) -> Panel:
        decisions, differs = self._decisions[self._history], self._differences[self._history]
        rows: list[Words | Gauge] = []
        for k, column in enumerate(BINARY):
            probability = float(decisions.binary[position, k])
            asked = decisions.ready[position] and self._judged[position, k]
            signs = [
                _sign(self._recording.controls[position, column] > 0.5, "●", "first"),
                _sign(asked and probability >= self._thresholds[k], "●", "second"),
                _sign(decisions.sent[position, column] > 0.5, "→", "good"),
            ]
            rows.append(
                Gauge(
                    label=LABELS[k], signs=signs, differs=bool(differs[position, k]),
                    value=round(probability, 3) if asked else None, mark=round(float(self._thresholds[k]), 3),
                )
            )  # fmt: skip
        return Panel("Keys: ● player ● model → sent │ threshold", rows)

    def _values(self, position: int) -> Panel:
        recording, decisions = self._recording, self._decisions[self._history]
        screen = recording.state[position, SCREEN_OPEN] > 0
        columns, values, low = (CURSOR, decisions.cursor, 0.0) if screen else (LOOK, decisions.look, -1.0)
        rows: list[Words | Gauge] = [
            Gauge(
                label=CONTROL_NAMES[column].replace("_", " "), low=low,
                value=round(float(values[position, axis]), 3) if decisions.ready[position] else None,
                other=round(float(recording.controls[position, column]), 3),
            ) for axis, column in enumerate(columns)
        ]  # fmt: skip
        return Panel(f"{'Cursor' if screen else 'Look'} and slot: ◆ player █ model", [*rows, self._hotbar(position)])

    def _hotbar(self, position: int) -> Words:
        decisions = self._decisions[self._history]
        human, sent = self._slots[position], slots(decisions.sent[position : position + 1])[0]
        likeliest = int(decisions.hotbar[position].argmax())
        words = [
            Span("slot  ", "bad" if self._differences[self._history][position, -1] else "quiet"),
            Span(f"player {human or '–'}  ", "first"),
            Span(f"model {sent or '–'}", "second"),
        ]
        if decisions.ready[position]:
            words.append(Span(f"  likeliest {likeliest + 1}: {decisions.hotbar[position, likeliest]:.2f}", "quiet"))
        return Words(words)


def _sign(on: bool | np.bool_, sign: str, kind: Kind) -> Span:
    return Span(sign, kind) if on else Span("·", "faint")
