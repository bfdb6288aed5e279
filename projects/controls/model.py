"""ControlTransformer v2: a window of features to five control heads."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    COORDINATES,
    CURSOR,
    CURSOR_AT_REST,
    FEATURE_SIZE,
    HISTORY,
    HISTORY_FEATURES,
    HOTBAR,
    INV,
    LOOK,
    WINDOW,
)

HEAD_WIDTH = 128
FILTER_STD, FILTER_DECAY = 0.4, -6.0
"""How the filter begins: numbers of this deviation, at the oldest row exp(-6) of them."""
Readout = Literal["mean", "filter"]
MOST_LOOK, LEAST_CURSOR = 0.97, 0.01
"""How near its ends a past control may be for a residual: at the ends themselves tanh and sigmoid do not move."""


class ControlTransformer(nn.Module):
    """Post-norm encoder, a readout that favours recent rows, five small heads; 3,510,429 parameters at the defaults.

    Args:
        readout: what the heads see. "mean": a weighted mean of all rows, with a learned position a row. "filter": the
            newest row of the encoder plus a learned filter over the embedded rows, with fixed positions.
        look_residual, cursor_residual: the share of the newest past control that an answer starts from, before tanh and
            sigmoid. Below 1 an error of the past shrinks from frame to frame where the model hears itself.
        whiten: coordinates are decorrelated (`normalise`), not only standardised.
    """

    feature_mean: Tensor
    feature_std: Tensor
    whitening: Tensor

    def __init__(
        self,
        d_model: int = 256,
        nhead: int = 8,
        num_layers: int = 6,
        dim_feedforward: int = 512,
        dropout: float = 0.3,
        max_seq_len: int = WINDOW,
        readout: Readout = "mean",
        look_residual: float = 0.0,
        cursor_residual: float = 0.0,
        whiten: bool = False,
    ) -> None:
        super().__init__()
        self._readout, self._whiten = readout, whiten
        self._look_residual, self._cursor_residual = look_residual, cursor_residual
        self.register_buffer("feature_mean", torch.zeros(FEATURE_SIZE))
        self.register_buffer("feature_std", torch.ones(FEATURE_SIZE))
        if whiten:
            self.register_buffer("whitening", torch.eye(COORDINATES))
        self.project = nn.Linear(FEATURE_SIZE, d_model)
        # at the usual .02 rows look alike for long: after 600 steps the score was .64 instead of .79
        table = nn.Embedding(max_seq_len, d_model)
        if readout == "mean":
            self.positions = table
        else:
            self.filter = table
            nn.init.normal_(self.filter.weight, std=FILTER_STD)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        for weight in self.encoder.parameters():  # the encoder copies one layer, so all would start the same
            if weight.ndim > 1:
                nn.init.xavier_uniform_(weight)
        self.decay = nn.Parameter(torch.tensor(-2.0 if readout == "mean" else FILTER_DECAY))

        def head(outputs: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(d_model, HEAD_WIDTH), nn.ReLU(), nn.Dropout(dropout), nn.Linear(HEAD_WIDTH, outputs)
            )

        self.action = head(len(ACTION))
        self.look = head(len(LOOK))
        self.hotbar = head(len(HOTBAR))
        self.cursor = head(len(CURSOR))
        self.inv = head(len(INV))

    def normalise(self, mean: Tensor, std: Tensor, whitening: Tensor | None = None) -> None:
        """Standardise features by `mean` and `std`, each (671,), from now on; saved with the weights.

        With `whitening: (225, 225)` coordinates are multiplied by it in the place of being divided by `std`.
        """
        self.feature_mean.copy_(mean)
        self.feature_std.copy_(std)
        if whitening is not None:
            self.feature_std[:COORDINATES] = 1
            self.whitening.copy_(whitening)

    def forward(self, features: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Controls of the newest row.

        features: (batch, time, 671) with time up to `max_seq_len`. mask: (batch, time) bool, True where a row is real;
        short windows are padded on the left. A window without a real row gives finite values that mean nothing.

        Gives float32 action_logits (batch, 12), look (batch, 2) in [-1, 1], hotbar_logits (batch, 9),
        cursor (batch, 2) in [0, 1] and inv_click_logits (batch, 3).
        """
        return self.read(self.embed(features), mask, features[:, -1, HISTORY_FEATURES])

    def embed(self, features: Tensor) -> Tensor:
        """Feature rows, each for itself: (..., 671) to (..., d_model)."""
        scaled = (features - self.feature_mean) / self.feature_std
        weight = self.project.weight
        if self._whiten:  # folded into the projection, which has fewer rows than a batch
            weight = torch.cat([weight[:, :COORDINATES] @ self.whitening, weight[:, COORDINATES:]], dim=1)
        return F.linear(scaled, weight, self.project.bias)

    def read(self, rows: Tensor, mask: Tensor, past: Tensor) -> dict[str, Tensor]:
        """Controls of the newest of embedded `rows: (batch, time, d_model)`, as `forward`.

        past: (batch, 140), the five past controls that the newest row shows.
        """
        # attention over no key at all is NaN, so a fully padded window attends to its padding
        padded = ~(mask | ~mask.any(dim=1, keepdim=True))
        if self._readout == "mean":
            positions = self.positions.weight[-rows.shape[1] :]  # aligned at the newest row, wherever the window starts
            pooled = self._pool(self.encoder(rows + positions, src_key_padding_mask=padded), mask)
        else:
            positions = sine_positions(rows.shape[1], rows.shape[2], rows.device)
            pooled = self._newest(rows + positions, padded) + self._filtered(rows, mask)
        # in the order of the first version: it is that of gradients' sums and of dropout's draws, so of every bit
        action, look, hotbar, cursor, inv = (
            head(pooled).float() for head in (self.action, self.look, self.hotbar, self.cursor, self.inv)
        )
        if self._look_residual or self._cursor_residual:
            last_look, last_cursor = last_shown(past)
            look = look + self._look_residual * last_look.clamp(-MOST_LOOK, MOST_LOOK).atanh()
            cursor = cursor + self._cursor_residual * last_cursor.clamp(LEAST_CURSOR, 1 - LEAST_CURSOR).logit()
        return {
            "action_logits": action,
            "look": look.tanh(),
            "hotbar_logits": hotbar,
            "cursor": cursor.sigmoid(),
            "inv_click_logits": inv,
        }

    def _pool(self, encoded: Tensor, mask: Tensor) -> Tensor:
        """Mean over real rows weighted by exp(decay · (1 - t)), t from 0 (oldest) to 1: (batch, d_model).

        In float32 also under autocast: with a learned decay the weights span orders of magnitude.
        """
        age = torch.linspace(1, 0, encoded.shape[1], device=encoded.device)
        weights = (self.decay.float() * age).exp() * mask
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
        return (encoded.float() * weights[..., None]).sum(dim=1)

    def _newest(self, rows: Tensor, padded: Tensor) -> Tensor:
        """The newest row of the encoder: (batch, d_model). Its last layer asks for no other, which halves its work."""
        layers = list(self.encoder.layers)
        for layer in layers[:-1]:
            rows = layer(rows, src_key_padding_mask=padded)
        last: nn.TransformerEncoderLayer = layers[-1]
        newest = rows[:, -1:]
        seen, _ = last.self_attn(newest, rows, rows, key_padding_mask=padded, need_weights=False)
        newest = last.norm1(newest + last.dropout1(seen))
        inner = last.dropout(last.activation(last.linear1(newest)))
        encoded: Tensor = last.norm2(newest + last.dropout2(last.linear2(inner)))
        return encoded[:, 0]

    def _filtered(self, rows: Tensor, mask: Tensor) -> Tensor:
        """Sum over real rows of filter · exp(decay · age), age from 0 (newest) to 1 (oldest): (batch, d_model).

        In float32 also under autocast, as in `_pool`.
        """
        time, most = rows.shape[1], self.filter.num_embeddings
        age = torch.linspace(1, 0, most, device=rows.device)[-time:, None]
        taps = self.filter.weight[-time:].float() * (self.decay.float() * age).exp()
        return (rows.float() * taps * mask[..., None]).sum(dim=1)


def sine_positions(time: int, width: int, device: torch.device) -> Tensor:
    """Sines and cosines of the rows' ages in frames, at periods from 2π to 2π · 10,000: (time, width).

    Those of "Attention Is All You Need", section 3.5.
    """
    age = torch.arange(time - 1, -1, -1, device=device, dtype=torch.float32)[:, None]
    pairs = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    angle = age * (-math.log(10_000) / width * pairs).exp()
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:, :width]


def last_shown(past: Tensor) -> tuple[Tensor, Tensor]:
    """Look and cursor, (batch, 2) each, of the newest of the five past controls in `past: (batch, 140)` not hidden.

    Hidden is one that is all zero, which no frame is: its cursor rests in the middle. Where all are hidden, 0 and .5.
    """
    rows = past.float().view(-1, HISTORY, CONTROL_SIZE)
    values = torch.cat([rows[:, :, LOOK[0] : LOOK[-1] + 1], rows[:, :, CURSOR[0] : CURSOR[-1] + 1]], dim=2)
    shown = (rows != 0).any(dim=2, keepdim=True)
    last = torch.zeros_like(values[:, 0])
    last[:, len(LOOK) :] = CURSOR_AT_REST
    for slot in range(HISTORY):
        last = torch.where(shown[:, slot], values[:, slot], last)
    return last[:, : len(LOOK)], last[:, len(LOOK) :]
