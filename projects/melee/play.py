"""`cockpit play RUN`: users fight in the model's world, from a moment of a real game on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import torch
from msgspec import Meta

from engines.basics.errors import DataError, nearest
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Gauge, Panel, Press, Scene, Span, Words
from engines.tasks.arguments import as_struct
from engines.tasks.each_file import Left, each_file
from engines.tasks.interactive import IDLE_MINUTES, InteractiveContext
from engines.tasks.live import play_live
from engines.training.trained import open_run
from projects.melee.actions import NAMES
from projects.melee.config import MeleeConfig
from projects.melee.encoding import NEEDED, encode
from projects.melee.evaluation import FIRST_START
from projects.melee.frames import ACTION, AGE, CHARACTER, HITLAG, PERCENT, SHIELD, STOCKS, Frames
from projects.melee.games import GameWindows, complete_games, items_of
from projects.melee.layout import CHARACTERS
from projects.melee.pads import KEYS, Pad, shown
from projects.melee.parse import Refused, read
from projects.melee.project import Melee, past_frames
from projects.melee.recording import write_game
from projects.melee.rollout import Stream
from projects.melee.rollouts import validated
from projects.melee.rules import outside, respawned
from projects.melee.sources import sources
from projects.melee.stage import KINDS, view
from projects.melee.store import Store
from projects.melee.world import WorldModel

TAPE_BYTES = 1 << 30
"""What the tape may take: a state of a large model is some hundred kilobytes."""
GHOST_FRAMES = 3600
PATIENCE = 20
"""Frames beyond the blast zone after which a fighter has lost a stock, whatever the model says."""
SEATS = ("p1", "p2")


class Order(msgspec.Struct):
    """What is asked for. recording: a replay or a store, the run's own store where empty. game: its name in a store.

    frame: where in the game. p2: who plays the second fighter while its seat is free.
    """

    run: Path
    recording: str = ""
    game: str = ""
    frame: Annotated[int, Meta(ge=0)] = FIRST_START
    p2: Literal["keys", "replay", "still"] = "replay"
    idle_minutes: float = IDLE_MINUTES


def play(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Play until it is ended. Raises `UserError` for bad arguments, `DataError` for what cannot be read."""
    order = as_struct(arguments, Order)
    trained = open_run(RunDirectory(order.run))
    cfg: MeleeConfig = trained.settings
    model = trained.load_into(Melee().build(cfg))
    assert isinstance(model, WorldModel)
    game, name = _real_game(cfg, order, context.check)
    context.log(f"{name} from frame {order.frame}, epoch {trained.state.epoch}")
    torch.set_num_threads(1)  # one frame is too little work to share
    session = MeleeSession(model, game, past_frames(cfg), name=name, folder=context.folder, second=order.p2)
    play_live(session, context, order.idle_minutes, longest=session.longest_tape)


def _real_game(cfg: MeleeConfig, order: Order, check: Callable[[], None] = lambda: None) -> tuple[Frames, str]:
    """Frames (1, time) of a game around where play begins, and its name. Raises `DataError`."""
    path = Path(order.recording or cfg.data.path)
    if path.is_file():
        return _replay(cfg, path, order.frame, check)
    store = Store(path)
    known = {placed.game.name: placed for placed in complete_games(store)[0]}
    name = order.game or (next(iter(known)) if order.recording else validated(RunDirectory(order.run))[0])
    if name not in known:
        raise DataError(f"{store.path}: holds no whole game {name!r}{nearest(name, known)}.")
    placed = known[name]
    first, length = _span(cfg, name, placed.game.frames, order.frame)
    games = GameWindows(store, [placed], length, cfg.data.projectiles, torch.device("cpu"))
    return games.frames(np.array([0]), np.array([first]), length), name


def _span(cfg: MeleeConfig, name: str, frames: int, frame: int) -> tuple[int, int]:
    """The first of the frames that are needed to begin at `frame`, and how many are taken."""
    past = past_frames(cfg)
    first = frame - past + 1
    if first < 0 or frame + 1 >= frames:
        raise DataError(f"{name} has {frames} frames; expected frame from {past - 1} to {frames - 2}.")
    return first, min(frames - first, past + GHOST_FRAMES)


def _replay(cfg: MeleeConfig, path: Path, frame: int, check: Callable[[], None]) -> tuple[Frames, str]:
    """The same from a file that is no store yet, read by a process of its own: a damaged one may end that."""
    with each_file(partial(read, rollback="last", least_frames=1), sources(path), check, workers=1) as outcomes:
        outcome = next(outcomes)
    if isinstance(outcome, Left):
        raise DataError(f"{path}: cannot be read ({outcome.reason}).")
    game = outcome.value
    if isinstance(game, Refused):
        raise DataError(f"{path}: {game.text}; expected a game of two users.")
    if absent := [name for name in NEEDED if name in game.missing]:
        raise DataError(f"{path}: lacks what a model reads ({', '.join(absent)}); choose a newer replay.")
    first, length = _span(cfg, path.name, len(game.frames), frame)
    rows = game.frames[None, first : first + length]
    stages = np.array([game.stage])
    return encode(rows, stages, items_of(rows, game.items), cfg.data.projectiles), outcome.item.title


@dataclass(frozen=True)
class State:
    """A moment of the dream: its stream, which no step changes, what both hold, and how many frames it is in."""

    stream: Stream
    pads: tuple[Pad, Pad]
    frame: int = 0
    lost: tuple[int, int] = (0, 0)
    """Frames that each has been beyond the blast zone without the model having said that it is dead."""

    @property
    def over(self) -> bool:
        """Whether a fighter has no stock left."""
        return bool((self.stream.frame.value(STOCKS) < 0.5).any())


class MeleeSession:
    """A `LiveSession` of two fighters.

    Args:
        model: in eval mode.
        game: (1, time) true frames; the first `past` of them are where it begins.
        folder: where recordings are written.
        second: who plays the second fighter while its seat is free.
    """

    rate = 60.0
    speeds: Sequence[float] = (0.1, 0.25, 0.5, 1.0)
    speed = 0.25
    viewers: Sequence[str] = SEATS
    controls: Sequence[Action] = KEYS
    actions: Sequence[Action] = (
        Action("ghost", "g", "ghost", "Show or hide the real game, drawn faintly"),
        Action("write", "w", "record", "Write what was played as a store of games, in the folder of this task"),
    )

    def __init__(
        self, model: WorldModel, game: Frames, past: int, *, name: str, folder: Path, second: str = "replay"
    ) -> None:
        self._model, self._game, self._past = model, game, past
        self._name, self._second = name, second
        self._folder, self._written, self._said = folder, 0, ""
        self._ghost = True

    @property
    def longest_tape(self) -> int:
        """States that fit into what the tape may take."""
        return max(300, min(36_000, TAPE_BYTES // max(1, self.begin().stream.size)))

    @torch.inference_mode()
    def begin(self) -> State:
        return State(Stream(self._model, self._game.at(slice(None, self._past)), seed=0), (Pad(), Pad()))

    @torch.inference_mode()
    def step(self, state: State, presses: Sequence[Press], viewers: Sequence[str]) -> State:
        if state.over:
            return state
        pads = list(state.pads)
        for press in presses:
            if press.viewer in SEATS:
                place = SEATS.index(press.viewer)
                pads[place] = pads[place].pressed(press.action)
        controls = torch.stack([pad.control() for pad in pads])
        if self._second == "replay" and "p2" not in viewers and (real := self._real(state.frame + 1)) is not None:
            controls[1] = real.control[0, 1]
        elif self._second == "still" and "p2" not in viewers:
            controls[1] = Pad().control()
        stream = state.stream.branch()
        out = outside(stream.step(controls[None]))[0]
        lost = tuple(frames + 1 if is_out else 0 for frames, is_out in zip(state.lost, out.tolist(), strict=True))
        if max(lost) >= PATIENCE:
            stream.frame = respawned(stream.frame, torch.tensor([[frames >= PATIENCE for frames in lost]]))
        return State(stream, (pads[0].after_frame(), pads[1].after_frame()), state.frame + 1, (lost[0], lost[1]))

    def act(self, press: Press, tape: Sequence[State]) -> None:
        if press.action == "ghost":
            self._ghost = not self._ghost
            return
        self._written += 1
        name = f"played_{self._written}"
        try:
            write_game(self._folder / name, name, [state.stream.frame for state in tape])
            self._said = f"{len(tape)} frames are in {name}"
        except (DataError, OSError) as error:
            self._said = f"not written: {error}"

    def scene(self, state: State) -> Scene:
        frame, real = state.stream.frame, self._real(state.frame)
        note = "over: R begins again" if state.over else self._said
        return Scene(
            title=self._name, unit="frame", note=note, view=view(frame, real if self._ghost else None),
            panels=[_panel(frame, place) for place in (0, 1)],
        )  # fmt: skip

    def _real(self, frame: int) -> Frames | None:
        """The true frame (1) at that time, where the game is so long."""
        place = self._past - 1 + frame
        return self._game.at(place) if place < self._game.frames else None


def _panel(frame: Frames, place: int) -> Panel:
    """One fighter in numbers."""
    stocks = round(float(frame.value(STOCKS)[0, place]))
    action, age = int(frame.ints[0, place, ACTION]), float(frame.value(AGE)[0, place])
    character = int(frame.ints[0, place, CHARACTER])
    name = CHARACTERS[character] if character < len(CHARACTERS) else f"character {character}"
    percent, hitlag = float(frame.value(PERCENT)[0, place]), float(frame.value(HITLAG)[0, place])
    kind = KINDS[place]
    rows: list[Words | Gauge] = [
        Words(
            [
                Span("●" * stocks + "○" * (4 - stocks), kind),
                Span(f"  {percent:.0f} %", "bad" if percent > 100 else "plain"),
            ]
        ),
        Gauge(label="percent", value=percent, low=0, high=200, kind=kind),
        Gauge(label="shield", value=float(frame.value(SHIELD)[0, place]), low=0, high=60, kind=kind),
        Words(
            [Span(NAMES[action], "accent"), Span(f" {age:.0f}", "quiet"), Span("  hitlag" if hitlag > 0 else "", "bad")]
        ),
        Words([Span(shown(frame.control[0, place]), "quiet")]),
    ]
    return Panel(f"P{place + 1} {name}", rows)
