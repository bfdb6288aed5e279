"""`cockpit play RUN`: a recorded game with its dream beside it, then the episodes that were played, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from msgspec import Meta
from numpy.typing import NDArray

from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Gauge, Line, Panel, Scene, Span, Strip, View, Words
from engines.tasks.arguments import as_struct
from engines.tasks.interactive import IDLE_MINUTES, InteractiveContext, play
from projects.agent.layout import ABILITIES, DEATH_REWARD, NONE, SLICES, UNKNOWN
from projects.agent.look import GAP, draw
from projects.agent.opened import Opened, open_agent
from projects.agent.shown import Filmed, Shown, film, show

STRETCHES = 200
"""Of the timeline."""
HORIZONS = (1, 2, 4, 8, 16, 32)
ARROWS = "→↗↑↖←↙↓↘"
CURVE = (-0.45, -0.08)
"""Where the curve lies below pictures of height 1."""
ACTIONS = (
    Action("event", "n", "next event", "To the next gold step or death"),
    Action("back-event", "N", "prev event", "To the event before"),
    Action("episode", "e", "next episode", "To the next of the played episodes, the worst first"),
    Action("game", "g", "the game", "Back to the recorded game"),
)


class Order(msgspec.Struct):
    """What is asked for. recording: a game's features.json or latents; the first that validated where empty.

    horizon: frames of each dream before the next one begins. episodes: how many are played, in the arena alone.
    """

    run: Path
    recording: str = ""
    horizon: Annotated[int, Meta(ge=1, le=200)] = 32
    episodes: Annotated[int, Meta(ge=0, le=200)] = 24
    frames: Annotated[int, Meta(ge=10, le=2000)] = 200
    idle_minutes: float = IDLE_MINUTES


def step_through(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Dream along the game and play episodes, then show them until it is ended.

    Raises `UserError` for bad arguments, `DataError` for what cannot be read.
    """
    order = as_struct(arguments, Order)
    opened = open_agent(RunDirectory(order.run))
    recording = opened.recording(order.recording)
    net, cfg = opened.net, opened.cfg
    with torch.inference_mode():
        shown = show(net, cfg, recording, order.horizon, lambda done, total: context.progress(done, total, "frames"))
    filmed: list[Filmed] = []
    if order.episodes and opened.arena:
        context.log(f"playing {order.episodes} episodes of {order.frames} frames")
        filmed = film(
            net, cfg, order.episodes, order.frames, lambda done, total: context.progress(done, total, "frames played")
        )
    context.log(f"{recording.name}: {len(shown)} frames, {len(filmed)} played episodes")
    play(AgentSession(opened, shown, filmed), context, order.idle_minutes)


class AgentSession:
    """A game and played episodes one after another, an `engines.tasks.interactive.Session`."""

    actions: Sequence[Action] = ACTIONS
    rate = 20.0

    def __init__(self, opened: Opened, shown: Shown, filmed: Sequence[Filmed]) -> None:
        self._opened, self._shown, self._filmed = opened, shown, filmed
        self._starts = np.cumsum([0, len(shown), *(len(one) for one in filmed)])
        self.total = int(self._starts[-1])
        happened = np.concatenate([shown.events, *(one.events for one in filmed)])
        self._events = np.flatnonzero(happened)
        stretches = np.array_split(happened, min(STRETCHES, self.total))
        self._strip = Strip("events of the game, then of what was played", [float(one.any()) for one in stretches])

    def act(self, action: str, position: int) -> int:
        later, earlier = self._events[self._events > position], self._events[self._events < position]
        starts = self._starts[1:-1]
        if action == "game":
            return 0
        elif action == "event" and len(later):
            return int(later[0])
        elif action == "back-event" and len(earlier):
            return int(earlier[-1])
        elif action == "episode" and len(starts):
            return int(starts[starts > position][0]) if (starts > position).any() else int(starts[0])
        return position

    def scene(self, position: int) -> Scene:
        part = int(np.searchsorted(self._starts, position, side="right")) - 1
        frame = position - int(self._starts[part])
        return self._game(frame) if part == 0 else self._episode(part - 1, frame)

    def _game(self, frame: int) -> Scene:
        shown, age = self._shown, int(self._shown.age[frame])
        items = draw(self._opened, shown.latents[frame], 0.0, "first")
        if age:
            items += draw(self._opened, shown.dreamed[frame], 1 + GAP, "second")
        curves = [Curve(shown.reward, "first"), Curve(shown.said_reward, "second"), Curve(shown.value, "accent")]
        items += _curves(curves, frame, 2 + GAP)
        title = f"true │ dream, frame {age}" if age else "true │ no dream here"
        return Scene(
            title=shown.name,
            note=f"event {int(self._shown.events[: frame + 1].sum())} of {int(shown.events.sum())}",
            view=View((0.0, CURVE[0]), (2 + GAP, 1.0), items, title=title),
            panels=[_actions(shown, frame), _rewards(shown, frame), self._horizons(frame)],
            strip=self._strip,
        )

    def _horizons(self, frame: int) -> Panel:
        shown = self._shown
        top = max(1e-6, float(max(shown.error_by_horizon.max(), shown.still_by_horizon.max())))
        rows: list[Words | Gauge] = []
        for horizon in HORIZONS:
            if horizon <= len(shown.error_by_horizon):
                dream, still = shown.error_by_horizon[horizon - 1], shown.still_by_horizon[horizon - 1]
                label = f"{horizon} frame{'s' * (horizon > 1)}"
                rows.append(Gauge(label=label, value=_rounded(dream), other=_rounded(still), high=round(top, 3)))
        rows.append(Gauge(label="here", value=round(float(shown.error[frame]), 3), high=round(top, 3), kind="accent"))
        return Panel("Error of dreams: █ dream ◆ nothing moves", rows, note="in deviations of the latents")

    def _episode(self, number: int, frame: int) -> Scene:
        one = self._filmed[number]
        items = draw(self._opened, one.latents[frame], 0.0, "second")
        items += _curves([Curve(one.reward, "first"), Curve(one.value, "accent")], frame, 1.0)
        earned = float(one.reward[: frame + 1].sum())
        rows: list[Words | Gauge] = [
            Words([Span(f"return {one.total:.1f}", "bad" if one.deaths else "good"), Span(f"  so far {earned:.1f}")]),
            Words([Span(f"{one.deaths} death{'s' * (one.deaths != 1)}, {one.gold:.0f} gold", "quiet")]),
            Words([Span("moves  ", "quiet"), Span(way(int(one.movement[frame])), "second")]),
            Words([Span("presses  ", "quiet"), Span(_pressed(one.abilities[frame]) or "–", "second")]),
            Gauge(label="value", value=_rounded(one.value[frame]), low=-20, high=20, kind="accent"),
        ]
        return Scene(
            title=f"played, {_ordinal(number)}worst of {len(self._filmed)}",
            note=f"frame {frame + 1} of {len(one)}",
            view=View((0.0, CURVE[0]), (1.0, 1.0), items, title="the policy plays"),
            panels=[Panel("Played in the arena", rows)],
            strip=self._strip,
        )


class Curve(msgspec.Struct, frozen=True):
    """Values along the frames and their colour."""

    values: NDArray[np.float32]
    kind: Any


def _curves(curves: Sequence[Curve], frame: int, width: float) -> list[Any]:
    """Curves below the pictures, each between its own extremes, on the frames around this one, and where it is."""
    low, high = CURVE
    around = slice(max(0, frame - 100), frame + 100)
    items: list[Any] = []
    for curve in curves:
        values = np.nan_to_num(curve.values[around].astype(np.float64))
        spread = max(1e-6, float(values.max() - values.min()))
        heights = low + (high - low) * (values - values.min()) / spread
        across = width * np.arange(len(values)) / max(1, len(values) - 1)
        items.append(
            Line([(round(float(x), 4), round(float(y), 4)) for x, y in zip(across, heights, strict=True)], curve.kind)
        )
    shown = len(curves[0].values[around])
    here = width * (frame - around.start) / max(1, shown - 1)
    return [*items, Line([(here, low), (here, high)], "quiet")]


def _actions(shown: Shown, frame: int) -> Panel:
    done, chances = int(shown.movement[frame]), shown.said_movement[frame]
    known = not np.isnan(chances[0])
    likeliest = int(chances.argmax()) if known else UNKNOWN
    differs = done != likeliest and UNKNOWN not in (done, likeliest)
    rows: list[Words | Gauge] = [
        Words([
            Span("recorded ", "quiet"), Span(way(done), "first"),
            Span(" changes" if shown.changed[frame] else "", "accent"),
        ]),
        Gauge(label="chance", value=round(float(chances[done]), 3) if known and done != UNKNOWN else None),
        Words([
            Span("predicted ", "quiet"), Span(way(likeliest), "second"), Span(" ≠" if differs else "", "bad"),
        ]),
    ]  # fmt: skip
    for index, name in enumerate(ABILITIES):
        if not shown.used[index]:
            continue
        chance, on = shown.said_abilities[frame, index], bool(shown.abilities[frame, index])
        value = None if np.isnan(chance) else round(float(chance), 3)
        signs = [Span("●", "first") if on else Span("·", "faint")]
        differs = value is not None and (value > 0.5) != on
        rows.append(Gauge(label=name, value=value, signs=signs, differs=differs))
    return Panel("Actions: ● recorded █ predicted", rows)


def _rewards(shown: Shown, frame: int) -> Panel:
    rows: list[Words | Gauge] = [
        Gauge(label="reward", value=_rounded(shown.said_reward[frame]), other=_rounded(shown.reward[frame]),
              low=DEATH_REWARD, high=-DEATH_REWARD),
        Gauge(label="P(event)", value=_rounded(shown.said_event[frame]),
              signs=[Span("●", "first") if shown.events[frame] else Span("·", "faint")]),
        Gauge(label="value", value=_rounded(shown.value[frame]), low=-20, high=20, kind="accent"),
    ]  # fmt: skip
    return Panel("Reward and value: █ model ◆ recorded", rows)


def _rounded(value: float | np.floating) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def way(movement: int) -> str:
    """An arrow and degrees."""
    if movement in (NONE, UNKNOWN):
        return "stays" if movement == NONE else "?"
    degrees = movement * 360 // SLICES
    return f"{ARROWS[round(degrees / 45) % 8]} {degrees}°"


def _pressed(abilities: NDArray[np.bool_]) -> str:
    return " ".join(name for name, on in zip(ABILITIES, abilities, strict=True) if on)


def _ordinal(number: int) -> str:
    return "" if not number else f"{number + 1}{ {1: 'nd', 2: 'rd'}.get(number, 'th') } "
