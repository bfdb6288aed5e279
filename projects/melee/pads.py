"""Controllers from key presses: a terminal says that a key went down, never that it came up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engines.contract.scenes import Action
from projects.melee.frames import CONTROL

REST = 0.5
HELD = 4
"""Frames that a tap holds its button; a stick stays until its opposite, the other axis' key, or `let go`."""
STICK = {"left": (0, 0.0), "right": (0, 1.0), "up": (1, 1.0), "down": (1, 0.0)}
"""Axis and value of a direction."""
TAPS = {"attack": "A", "special": "B", "jump": "X", "grab": "Z"}
SMASH = {"smash-left": (2, 0.0), "smash-right": (2, 1.0), "smash-up": (3, 1.0), "smash-down": (3, 0.0)}
KEYS = (
    Action("left", "left", "left", "Hold the stick left"),
    Action("right", "right", "right", "Hold the stick right"),
    Action("up", "up", "up", "Hold the stick up"),
    Action("down", "down", "down", "Hold the stick down"),
    Action("neutral", "n,0", "let go", "Let go of the stick and the shield"),
    Action("attack", "a", "attack", f"Press A for {HELD} frames"),
    Action("special", "s", "special", f"Press B for {HELD} frames"),
    Action("jump", "d", "jump", f"Press X for {HELD} frames"),
    Action("grab", "f", "grab", f"Press Z for {HELD} frames"),
    Action("shield", "v", "shield", "Hold the shield, or let it go"),
    Action("smash-left", "j", "smash ←", "Tap the C-stick left", minor=True),
    Action("smash-right", "l", "smash →", "Tap the C-stick right", minor=True),
    Action("smash-up", "i", "smash ↑", "Tap the C-stick up", minor=True),
    Action("smash-down", "k", "smash ↓", "Tap the C-stick down", minor=True),
)


@dataclass(frozen=True)
class Pad:
    """What one player holds: the stick's two axes, the shield, and how many frames each tap is held on."""

    stick: tuple[float, float] = (REST, REST)
    shield: bool = False
    taps: tuple[tuple[str, int], ...] = ()

    def pressed(self, key: str) -> Pad:
        """After a press of one of `KEYS`."""
        if key in STICK:
            axis, value = STICK[key]
            stick = (value, self.stick[1]) if axis == 0 else (self.stick[0], value)
            return replace(self, stick=stick)
        if key == "neutral":
            return replace(self, stick=(REST, REST), shield=False)
        if key == "shield":
            return replace(self, shield=not self.shield)
        return replace(self, taps=(*(tap for tap in self.taps if tap[0] != key), (key, HELD)))

    def after_frame(self) -> Pad:
        """A frame later: taps run out."""
        return replace(self, taps=tuple((key, left - 1) for key, left in self.taps if left > 1))

    def control(self) -> Tensor:
        """The controller: (13,) as `CONTROL` names its columns."""
        values = dict.fromkeys(CONTROL, 0.0) | {"c_x": REST, "c_y": REST}
        values["main_x"], values["main_y"] = self.stick
        if self.shield:
            values["L"] = values["shoulder"] = 1.0
        for key, _ in self.taps:
            if key in TAPS:
                values[TAPS[key]] = 1.0
            else:
                axis, value = SMASH[key]
                values[CONTROL[axis]] = value
        return torch.tensor([values[name] for name in CONTROL])


def shown(control: Tensor) -> str:
    """A controller in a few signs: where the stick is held, and what is pressed."""
    x, y = control[0].item() - REST, control[1].item() - REST
    arrows = {(-1, 0): "←", (1, 0): "→", (0, 1): "↑", (0, -1): "↓", (-1, 1): "↖", (1, 1): "↗", (-1, -1): "↙",
              (1, -1): "↘"}  # fmt: skip
    way = arrows.get(((x > 0.14) - (x < -0.14), (y > 0.14) - (y < -0.14)), "·")
    pressed = [name for name, value in zip(CONTROL[5:], control[5:].tolist(), strict=True) if value > 0.5]
    smash = "C" if (control[2:4] - REST).abs().max() > 0.14 else ""
    return " ".join([way, *pressed, *([smash] if smash else [])])
