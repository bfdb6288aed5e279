"""The world model: a view, a trunk (Mamba-2 or MLP), and the two ways to run it, over whole games or frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projects.melee.frames import VOCABULARY, Frames, join
from projects.melee.mamba import MambaStack, MixerState, RMSNorm
from projects.melee.rules import Prediction
from projects.melee.views import FighterView, JointView

COMBAT = ("l_cancel", "hurtbox", "ground", "last_attack")
"""Class heads that older checkpoints lack."""


class PlainBlock(nn.Module):
    """`x + W · silu(V · norm(x))`, twice as wide inside."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = RMSNorm(d_model)
        self.wide = nn.Linear(d_model, 2 * d_model)
        self.narrow = nn.Linear(2 * d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = x + self.narrow(F.silu(self.wide(self.norm(x))))
        return answer


class MambaTrunk(nn.Module):
    """Linear, Mamba-2 blocks, plain blocks, norm; controllers that come apart are added after the norm."""

    def __init__(
        self, width: int, extra: int, d_model: int, layers: int, *, chunk_size: int, dropout: float, plain: int
    ) -> None:
        super().__init__()
        self.project = nn.Linear(width, d_model)
        self.dropout = nn.Dropout(dropout)
        self.stack = MambaStack(d_model, layers, chunk_size)
        self.plain = nn.Sequential(*(PlainBlock(d_model) for _ in range(plain)))
        self.norm = RMSNorm(d_model)
        self.control = nn.Linear(extra, d_model) if extra else None

    def forward(
        self, rows: Tensor, extra: Tensor | None, states: list[MixerState] | None = None
    ) -> tuple[Tensor, list[MixerState]]:
        """Answers (streams, time, d_model) to rows (streams, time, width), and the states after them."""
        x, after = self.stack(self.dropout(self.project(rows)), states)
        return self._out(x, extra), after

    def step(self, row: Tensor, extra: Tensor | None, states: list[MixerState]) -> tuple[Tensor, list[MixerState]]:
        """The same for one frame (streams, width)."""
        x, after = self.stack.step(self.dropout(self.project(row)), states)
        return self._out(x, extra), after

    def _out(self, x: Tensor, extra: Tensor | None) -> Tensor:
        answer: Tensor = self.norm(self.plain(x))
        if self.control is not None:
            assert extra is not None
            answer = answer + self.control(extra)
        return answer


class MlpTrunk(nn.Module):
    """The rows of K frames side by side, with the controllers that come apart, through plain blocks."""

    def __init__(self, width: int, extra: int, d_model: int, layers: int, *, K: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(K * width + extra, d_model)
        self.dropout = nn.Dropout(dropout)
        self.plain = nn.Sequential(*(PlainBlock(d_model) for _ in range(layers)))
        self.norm = RMSNorm(d_model)

    def forward(self, windows: Tensor, extra: Tensor | None) -> Tensor:
        """Answers (streams, d_model) to windows (streams, K, width)."""
        rows = windows.flatten(1)
        if extra is not None:
            rows = torch.cat([rows, extra], dim=-1)
        answer: Tensor = self.norm(self.plain(self.dropout(F.silu(self.project(rows)))))
        return answer


@dataclass(frozen=True)
class Memory:
    """What a stream remembers: states of a model that carries them, else the newest frames with their controllers."""

    states: list[MixerState]
    frames: Frames | None = None
    control: Tensor | None = None


class WorldModel(nn.Module):
    """The next frame from the frames before and both controllers.

    Args:
        architecture: `mamba` or `mlp`.
        view: `fighter` or `joint`.
        K: frames that a window has; for a model that carries its state, frames of a training sequence.
        carry: keep the state from frame to frame instead of computing windows again; Mamba-2 alone.
        items, kinds: widths of what is known of projectiles.
        jumps: values that the jumps left can have.
        without: parts of the view `fighter` that are left out.
    """

    first_age: Tensor

    def __init__(
        self, *, architecture: str = "mamba", view: str = "fighter", d_model: int = 192, n_layers: int = 2, K: int = 16,
        carry: bool = True, chunk_size: int = 64, dropout: float = 0.0, plain_blocks: int = 1, kinematic: bool = True,
        embed_age: bool = True, items: int = 0, kinds: int = 0, jumps: int = VOCABULARY["jumps"],
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self.K, self.carry = K, carry and architecture == "mamba"
        self.view: FighterView | JointView
        if view == "fighter":
            self.view = FighterView(
                d_model, kinematic=kinematic, items=items, kinds=kinds, jumps=jumps, without=without
            )
        else:
            self.view = JointView(d_model, embed_age=embed_age, items=items, kinds=kinds, jumps=jumps)
        self.trunk: MambaTrunk | MlpTrunk
        if architecture == "mamba":
            self.trunk = MambaTrunk(
                self.view.width, self.view.extra, d_model, n_layers,
                chunk_size=chunk_size, dropout=dropout, plain=plain_blocks,
            )  # fmt: skip
        else:
            self.trunk = MlpTrunk(self.view.width, self.view.extra, d_model, n_layers, K=K, dropout=dropout)
        self.register_buffer("first_age", torch.zeros(VOCABULARY["action"]))

    @property
    def skipped(self) -> int:
        """Frames at the beginning of a sequence that no prediction follows: those before the first full window."""
        return skipped_frames(self.K, carry=self.carry)

    def forward(self, frames: Frames, control: Tensor) -> Prediction:
        """The frame after each of `frames` (batch, time) but the first `skipped`.

        control: (batch, time, 2, 13), the controllers that lead into the frame after each.
        """
        return self._answer(frames, control)[0]

    def _answer(self, frames: Frames, control: Tensor) -> tuple[Prediction, list[MixerState]]:
        rows, extra = self.view(frames, control)
        streams = rows.transpose(1, 2).flatten(0, 1)  # (batch · rows, time, width)
        beside = None if extra is None else extra.transpose(1, 2).flatten(0, 1)
        states: list[MixerState] = []
        if self.carry:
            assert isinstance(self.trunk, MambaTrunk)
            hidden, states = self.trunk(streams, beside)
        else:
            hidden = self._windows(streams, beside)
        hidden = hidden.reshape(len(frames), self.view.rows, *hidden.shape[1:]).transpose(1, 2)
        seen = frames.at(slice(self.skipped, None))
        return self.view.read(hidden, seen, control[:, self.skipped :]), states

    def _windows(self, streams: Tensor, beside: Tensor | None) -> Tensor:
        """Every window of K frames for itself: (streams, time - K + 1, d_model)."""
        windows = streams.unfold(1, self.K, 1).mT  # (streams, windows, K, width)
        flat = windows.flatten(0, 1)
        if isinstance(self.trunk, MlpTrunk):
            newest = None if beside is None else beside[:, self.K - 1 :].flatten(0, 1)
            hidden = self.trunk(flat, newest)
        else:
            each = None if beside is None else beside.unfold(1, self.K, 1).mT.flatten(0, 1)
            hidden = self.trunk(flat, each)[0][:, -1]
        answers: Tensor = hidden.reshape(*windows.shape[:2], -1)
        return answers

    def load(self, state: Mapping[str, Tensor]) -> list[str]:
        """Take the weights of a checkpoint; gives the names of class heads that it lacks, which are carried forward.

        Only the joint view may lack any, and only those of the combat context. Raises RuntimeError as
        `load_state_dict` does for all other faults.
        """
        absent = [name for name in COMBAT if self.view.rows == 1 and f"view.p0_{name}_head.weight" not in state]
        lacking = {
            f"view.{p}_{name}_head.{part}" for name in absent for p in ("p0", "p1") for part in ("weight", "bias")
        }
        own = {name: tensor for name, tensor in self.state_dict().items() if name in lacking}
        self.load_state_dict({**own, **state})
        self.view.silent = frozenset(absent)
        return absent

    # -- frame by frame -------------------------------------------------------------------------------------------

    def begin(self, frames: Frames, control: Tensor) -> Memory:
        """What a stream remembers after `frames` (batch, time), led on by `control` (batch, time, 2, 13).

        A model of windows needs at least K - 1 frames. No frame at all begins a stream of a carried state.
        """
        if self.carry:
            assert isinstance(self.trunk, MambaTrunk)
            if not frames.frames:
                return Memory(self.trunk.stack.initial(len(frames) * self.view.rows, frames.state.device))
            return Memory(self._answer(frames, control)[1])
        keep = slice(frames.frames - self.skipped, None)
        return Memory([], frames.at(keep), control[:, keep])

    def step(self, frame: Frames, control: Tensor, memory: Memory) -> tuple[Prediction, Memory]:
        """The frame after `frame` (batch) led on by `control` (batch, 2, 13), and what is remembered then."""
        now, led = frame.map(lambda part: part[:, None]), control[:, None]
        if not self.carry:
            assert memory.frames is not None
            assert memory.control is not None
            frames, controls = join([memory.frames, now]), torch.cat([memory.control, led], dim=1)
            said = self._answer(frames, controls)[0]
            return said.at(-1), Memory([], frames.at(slice(1, None)), controls[:, 1:])
        assert isinstance(self.trunk, MambaTrunk)
        rows, extra = self.view(now, led)
        beside = None if extra is None else extra[:, 0].flatten(0, 1)
        hidden, states = self.trunk.step(rows[:, 0].flatten(0, 1), beside, memory.states)
        return self.view.read(hidden.reshape(len(frame), 1, self.view.rows, -1), now, led).at(0), Memory(states)


def skipped_frames(K: int, *, carry: bool) -> int:
    """`WorldModel.skipped` of a model that is not there."""
    return 0 if carry else K - 1
