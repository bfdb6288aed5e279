"""One frame in, one decision out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from projects.controls.exported import ExportedConfig, read_exported
from projects.controls.layout import (
    BINARY,
    CONTROL_SIZE,
    CURSOR,
    CURSOR_AT_REST,
    DEFAULT_STATE,
    FRAME_SIZE,
    HOTBAR,
    HOTBAR_SLOT,
    LOOK,
    SCREEN_OPEN,
    STATE_SIZE,
)
from projects.controls.masks import Floats
from projects.controls.policy.network import Outputs, PolicyNetwork
from projects.controls.policy.rules import FULL_SCALE_DEGREES, Cursor, Hotbar, Hysteresis, Keys, Look, allowed
from projects.controls.policy.ticks import Tick, Ticks
from projects.controls.policy.window import FeatureStream
from projects.controls.sending import LEAST_FRAMES, LONGEST_GAP


@dataclass(frozen=True)
class Decision:
    """What to send for one frame, and the model's own answers behind it."""

    ready: bool
    """Whether the model was asked; where not, everything is released."""
    controls: Floats
    """(28,) as recordings lay them out: held keys 1 while held, pulses 1 where they fire, look in [-1, 1] smoothed,
    a hotbar slot 1 where it is to change, the cursor in [0, 1] (its middle while no screen is open)."""
    degrees: Floats
    """(2,) yaw and pitch to turn in this frame, for the time since the one before."""
    raw: Outputs
    why: str = ""
    """Where not ready: the reason, in words."""


class ControlPolicy:
    """Runs an exported policy on frames as they come.

    The history that the model sees is its own: of each past frame the decisions in the form of the training targets,
    before smoothing, cooldown and auto-release. Recordings hold what the player did, and those three are guards of
    the game that no recording shows; with a hysteresis margin of 0 this is the self-fed history of the evaluation.

    Nothing stays pressed by accident: a frame with a number that is not finite, a clock that stands still or goes
    back, and a gap of more than half a second release everything and start the buffer again. Only the caller can
    notice that frames have stopped coming: send `release()` then.
    """

    def __init__(self, config: ExportedConfig, network: PolicyNetwork) -> None:
        post = config.post
        self._network = network
        self._stream = FeatureStream(config.lagged_state)
        rules = post.rules
        self._binary = Hysteresis(np.concatenate([config.action, config.inv]), rules.margins)
        self._keys = Keys(rules.holds)
        self._pulses = np.array(BINARY)[~rules.holds]
        self._look = Look(post.look_deadzone, post.look_ema_alpha, post.look_rate_limit)
        self._cursor = Cursor(post.cursor_ema_alpha)
        self._hotbar = Hotbar(config.hotbar_confidence)
        self._fps = config.fps
        self._ticks = Ticks(config.fps)
        self.reset()

    @classmethod
    def load(cls, folder: Path) -> ControlPolicy:
        """The policy that `folder` holds. Raises `DataError` with a sentence."""
        config = read_exported(folder)
        return cls(config, PolicyNetwork.load(config))

    def reset(self) -> None:
        """Forget all buffered frames and state."""
        self._time = -math.inf
        self._frames = 0
        self._newest = _nothing("no frame yet")
        parts = (self._network, self._stream, self._ticks, self._binary, self._keys)
        for part in (*parts, self._look, self._cursor, self._hotbar):
            part.reset()

    def release(self, why: str = "released") -> Decision:
        """Let go of everything and forget the frames so far."""
        self.reset()
        return _nothing(why)

    def step(self, frame: Floats, state: Floats | None, time: float) -> Decision:
        """Decide for one frame.

        frame: (260,) as recorded. state: (46,) game state, None where the game tells nothing: gameplay then, and the
        slot in the hand is the one chosen last. time: seconds, of any clock that only goes forward. Frames may come at
        any rate: the model is asked at its own, as `Ticks` has it. Between two ticks held keys and cursor stay, and
        nothing fires; of several ticks at once every pulse fires.

        Raises ValueError for a wrong shape, with everything forgotten.
        """
        frame = self._checked(frame, FRAME_SIZE, "frame")
        known = DEFAULT_STATE if state is None else self._checked(state, STATE_SIZE, "state")
        if not (math.isfinite(time) and np.isfinite(frame).all() and np.isfinite(known).all()):
            return self.release("a number in the frame, the state or the time is not finite")
        broken = self._broken(time)
        if broken:
            self.reset()
        elapsed, self._time = time - self._time, time
        decided = []
        for tick in self._ticks.push(frame, known, time):
            decided.append(self._tick(tick, state is not None, broken))
            if self._time == -math.inf:  # the model's answer has released everything
                return decided[-1]
        self._newest = self._together(decided)
        if self._fps is None or not self._newest.ready:
            return self._newest
        return replace(self._newest, degrees=self._newest.degrees * np.float32(elapsed * self._fps))

    def _together(self, decided: list[Decision]) -> Decision:
        """One decision for the ticks that came with a frame; of none, what is held of the one before."""
        newest = decided[-1] if decided else self._newest
        controls = newest.controls.copy()
        controls[self._pulses] = np.max([one.controls[self._pulses] for one in decided], axis=0) if decided else 0
        slots = [one.controls[list(HOTBAR)] for one in decided if one.controls[list(HOTBAR)].any()]
        controls[list(HOTBAR)] = slots[-1] if slots else 0
        return replace(newest, controls=controls)

    def _tick(self, tick: Tick, told: bool, broken: str) -> Decision:
        """Decide at the model's own rate; `told`: the game says its state."""
        self._frames += 1
        self._network.push(self._stream.row(tick.frame, tick.state))
        if broken or self._frames < LEAST_FRAMES:
            self._stream.observe(_rest())
            return _nothing(broken or f"{self._frames} of {LEAST_FRAMES} frames buffered")
        return self._decide(tick.state, _slot(tick.state) if told else None, tick.time)

    def observe(self, controls: Floats) -> None:
        """Replace the history entry of the frame just stepped, as by recorded `controls: (28,)`: teacher forcing."""
        self._stream.observe(self._checked(controls, CONTROL_SIZE, "controls"))

    def _broken(self, time: float) -> str:
        """Why the stream of frames cannot go on at `time`, or nothing."""
        if time <= self._time:
            return "the clock stood still or went back"
        return f"no frame for over {LONGEST_GAP} s" if self._frames and time - self._time > LONGEST_GAP else ""

    def _decide(self, state: Floats, slot: int | None, time: float) -> Decision:
        answer = self._network.answer()
        if not answer.finite:  # as from coordinates of astronomic size
            return self.release("the model's answer is not finite")
        screen = bool(state[SCREEN_OPEN] > 0)
        on = self._binary.step(np.concatenate([answer.action, answer.inv]), allowed(screen))
        past, controls = _rest(), _rest()
        past[list(BINARY)] = on
        controls[list(BINARY)] = self._keys.step(on, time)
        if screen:
            past[list(CURSOR)] = answer.cursor
            controls[list(CURSOR)] = self._cursor.step(answer.cursor)
            self._look.reset()
        else:
            past[list(LOOK)] = answer.look
            controls[list(LOOK)] = self._look.step(answer.look)
            self._cursor.reset()
            if (chosen := self._hotbar.step(answer.hotbar, slot, time)) is not None:
                past[HOTBAR[chosen]] = controls[HOTBAR[chosen]] = 1
        self._stream.observe(past)
        return Decision(True, controls, controls[list(LOOK)] * FULL_SCALE_DEGREES, answer)

    def _checked(self, values: Floats, size: int, what: str) -> Floats:
        array = np.asarray(values)
        if array.shape != (size,) or array.dtype.kind not in "fiub":
            self.reset()
            raise ValueError(f"{what} has shape {array.shape} of {array.dtype}, expected ({size},) numbers")
        with np.errstate(over="ignore"):  # too large for a float32 is not finite
            return array.astype(np.float32)


def _rest() -> Floats:
    """Controls of a player who does nothing."""
    controls = np.zeros(CONTROL_SIZE, np.float32)
    controls[list(CURSOR)] = CURSOR_AT_REST
    return controls


def _nothing(why: str) -> Decision:
    return Decision(False, _rest(), np.zeros(len(LOOK), np.float32), Outputs.nothing(), why)


def _slot(state: Floats) -> int:
    """The slot in the hand, 0 to 8."""
    highest = len(HOTBAR) - 1
    return int(np.clip(np.rint(state[HOTBAR_SLOT] * highest), 0, highest))
