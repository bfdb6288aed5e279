"""What a model must beat, and what nobody can: repeat-last, linear models of the window, the simulator's own odds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engines.training.project import Batch
from projects.agent.demo.odds import read_odds
from projects.agent.layout import ABILITIES, MOVEMENTS, NONE
from projects.agent.windows import Windows

REPEAT, LINEAR, CEILING = "repeat-last", "linear on the window", "simulator's odds"
HISTORY = 8
"""Frames that the linear models see, as many of them as the window has up to that frame."""
POOLED = 3
"""Cells along height and width that latents are averaged to for them, where there are more."""
MOST_ROWS = 8192
"""Training frames that they are fitted on."""
PENALTY = 1e-4
CHUNK = 256


@dataclass(frozen=True)
class Guess:
    """Of windows (n, T), at each frame: the movement (n, T) and the abilities (n, T, 8) of the next one, and the
    chances of a reward event (n, T, offsets) from this frame's own transition on. None where nothing is said."""

    movement: NDArray[np.int64]
    abilities: NDArray[np.bool_]
    chance: NDArray[np.float64] | None


def baselines(train: Windows, seen: Windows, numbers: Tensor, offsets: int) -> dict[str, Guess]:
    """By name, of the windows `numbers: (n,)` of `seen`; fitted on `train` alone."""
    every = torch.linspace(0, train.count - 1, min(train.count, max(1, MOST_ROWS // train.frames))).long()
    linear = _Linear(_gathered(train, every), offsets)
    chosen = [linear.guess(_gathered(seen, part)) for part in torch.split(numbers, CHUNK)]
    return {REPEAT: _repeated(_gathered(seen, numbers)), LINEAR: _joined(chosen)}


def ceiling(folder: Path, seen: Windows, numbers: Tensor, offsets: int) -> Guess | None:
    """What the simulator would say of the windows `numbers: (n,)`: the expert's likeliest next action, and the odds of
    events up to 8 frames ahead. None for a folder that is not of the arena. Raises `DataError` for damaged odds."""
    parts, read = [], lru_cache(maxsize=1)(partial(read_odds, folder))
    for number in numbers.tolist():
        one, rows = seen.recordings[seen.game[number]], seen.start[number] + np.arange(seen.frames)
        odds = read(one.name, len(one))
        if odds is None:
            return None
        following = np.minimum(rows + 1, len(one) - 1)
        moved, used = odds.movement[following].argmax(axis=1), odds.abilities[following] > 0.5
        parts.append(Guess(moved[None], used[None], odds.event[None, rows, :offsets].astype(np.float64)))
    return _joined(parts)


class _Linear:
    """Softmax and logistic regressions on the latents and actions of the last frames, of all at once."""

    def __init__(self, train: Batch, offsets: int) -> None:
        self._offsets, self._widths = offsets, [MOVEMENTS, len(ABILITIES), offsets]
        inputs = _inputs(train)
        rows = inputs.flatten(0, 1)
        deviation, self._mean = torch.std_mean(rows, 0, correction=0)
        self._scale = torch.where(deviation < 1e-4, 1.0, deviation)
        self._weights = torch.zeros(rows.shape[1] + 1, sum(self._widths))
        self._fit(self._rows(inputs), train)

    def guess(self, batch: Batch) -> Guess:
        said = self._rows(_inputs(batch)) @ self._weights
        movement, abilities, events = torch.split(said, self._widths, dim=-1)
        return Guess(movement.argmax(-1).numpy(), (abilities > 0).numpy(), events.double().sigmoid().numpy())

    def _rows(self, inputs: Tensor) -> Tensor:
        """Standardised inputs and a constant: (n, T, inputs + 1)."""
        scaled = (inputs - self._mean) / self._scale
        return torch.cat([scaled, torch.ones_like(scaled[..., :1])], dim=-1)

    def _fit(self, rows: Tensor, train: Batch) -> None:
        """Least loss plus penalty, from zero, so that the fit is the same each time."""
        moved, used = train["movement"][:, 1:], train["abilities"][:, 1:]
        acted = train["acted"][:, 1:]
        known = acted & (moved >= 0)
        events, counted = _events(train, self._offsets)
        weights = self._weights.clone().requires_grad_()
        optimizer = torch.optim.LBFGS([weights], max_iter=60, history_size=10, line_search_fn="strong_wolfe")
        shares = [count.sum().clamp(min=1) for count in (known, acted, counted)]

        def closure() -> Tensor:
            optimizer.zero_grad()
            movement, abilities, chance = torch.split(rows @ weights, self._widths, dim=-1)
            loss = F.cross_entropy(movement[:, :-1][known], moved[known], reduction="sum") / shares[0]
            pressed = F.binary_cross_entropy_with_logits(abilities[:, :-1], used, reduction="none").sum(-1)
            came = F.binary_cross_entropy_with_logits(chance, events.float(), reduction="none")
            loss = loss + (pressed * acted).sum() / shares[1] + (came * counted).sum() / shares[2]
            loss = loss + PENALTY * weights.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        with torch.enable_grad():
            optimizer.step(closure)  # type: ignore[no-untyped-call]
        self._weights = weights.detach()


def _inputs(batch: Batch) -> Tensor:
    """At each frame latents, movement, abilities and presence of the last frames of the window: (n, T, inputs)."""
    latents = batch["latents"].flatten(0, 1)
    height, width = (min(POOLED, cells) for cells in latents.shape[2:])
    seen = F.adaptive_avg_pool2d(latents, (height, width)).reshape(*batch["present"].shape, -1)
    moved = F.one_hot(batch["movement"].clamp(min=0), MOVEMENTS) * (batch["movement"] >= 0)[..., None]
    frames = torch.cat([seen, moved.float(), batch["abilities"], batch["present"][..., None].float()], dim=-1)
    earlier = F.pad(frames, (0, 0, HISTORY - 1, 0)).unfold(1, HISTORY, 1)
    return earlier.flatten(2)


def _events(batch: Batch, offsets: int) -> tuple[Tensor, Tensor]:
    """Whether there is an event `offsets` ahead, and whether that is known: (n, T, offsets) each."""
    event = F.pad(batch["event"], (0, offsets - 1)).unfold(1, offsets, 1)
    return event, F.pad(batch["rewarded"], (0, offsets - 1)).unfold(1, offsets, 1)


def _repeated(batch: Batch) -> Guess:
    """The action of this frame again."""
    movement = batch["movement"].numpy()
    return Guess(np.where(movement < 0, NONE, movement), batch["abilities"].numpy() > 0.5, None)


def _gathered(windows: Windows, numbers: Tensor) -> Batch:
    """The windows as a batch on the CPU."""
    return {name: value.cpu() for name, value in windows.batch(numbers, None).items()}


def _joined(parts: list[Guess]) -> Guess:
    chances = [part.chance for part in parts if part.chance is not None]
    return Guess(
        np.concatenate([part.movement for part in parts]),
        np.concatenate([part.abilities for part in parts]),
        np.concatenate(chances) if chances else None,
    )
