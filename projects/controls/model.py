"""ControlTransformer v2: a window of features to five control heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from projects.controls.layout import ACTION, CURSOR, FEATURE_SIZE, HOTBAR, INV, LOOK, WINDOW

HEAD_WIDTH = 128


class ControlTransformer(nn.Module):
    """Post-norm encoder, pooling that favours recent rows, five small heads; 3,510,429 parameters at the defaults."""

    feature_mean: Tensor
    feature_std: Tensor

    def __init__(
        self,
        d_model: int = 256,
        nhead: int = 8,
        num_layers: int = 6,
        dim_feedforward: int = 512,
        dropout: float = 0.3,
        max_seq_len: int = WINDOW,
    ) -> None:
        super().__init__()
        self.register_buffer("feature_mean", torch.zeros(FEATURE_SIZE))
        self.register_buffer("feature_std", torch.ones(FEATURE_SIZE))
        self.project = nn.Linear(FEATURE_SIZE, d_model)
        # at the usual .02 rows look alike for long: after 600 steps the score was .64 instead of .79
        self.positions = nn.Embedding(max_seq_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        for weight in self.encoder.parameters():  # the encoder copies one layer, so all would start the same
            if weight.ndim > 1:
                nn.init.xavier_uniform_(weight)
        self.decay = nn.Parameter(torch.tensor(-2.0))

        def head(outputs: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(d_model, HEAD_WIDTH), nn.ReLU(), nn.Dropout(dropout), nn.Linear(HEAD_WIDTH, outputs)
            )

        self.action = head(len(ACTION))
        self.look = head(len(LOOK))
        self.hotbar = head(len(HOTBAR))
        self.cursor = head(len(CURSOR))
        self.inv = head(len(INV))

    def normalise(self, mean: Tensor, std: Tensor) -> None:
        """Standardise features by `mean` and `std`, each (671,), from now on; saved with the weights."""
        self.feature_mean.copy_(mean)
        self.feature_std.copy_(std)

    def forward(self, features: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Controls of the newest row.

        features: (batch, time, 671) with time up to `max_seq_len`. mask: (batch, time) bool, True where a row is real;
        short windows are padded on the left. A window without a real row gives the heads' answer to a zero vector.

        Gives float32 action_logits (batch, 12), look (batch, 2) in [-1, 1], hotbar_logits (batch, 9),
        cursor (batch, 2) in [0, 1] and inv_click_logits (batch, 3).
        """
        return self.read(self.embed(features), mask)

    def embed(self, features: Tensor) -> Tensor:
        """Feature rows, each for itself: (..., 671) to (..., d_model)."""
        rows: Tensor = self.project((features - self.feature_mean) / self.feature_std)
        return rows

    def read(self, rows: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Controls of the newest of embedded `rows: (batch, time, d_model)`, as `forward`."""
        positions = self.positions.weight[-rows.shape[1] :]  # aligned at the newest row, wherever the window starts
        # attention over no key at all is NaN, so a fully padded window attends to its padding and is pooled to zero
        padded = ~(mask | ~mask.any(dim=1, keepdim=True))
        encoded = self.encoder(rows + positions, src_key_padding_mask=padded)
        pooled = self._pool(encoded, mask)
        return {
            "action_logits": self.action(pooled).float(),
            "look": self.look(pooled).float().tanh(),
            "hotbar_logits": self.hotbar(pooled).float(),
            "cursor": self.cursor(pooled).float().sigmoid(),
            "inv_click_logits": self.inv(pooled).float(),
        }

    def _pool(self, encoded: Tensor, mask: Tensor) -> Tensor:
        """Mean over real rows weighted by exp(decay · (1 - t)), t from 0 (oldest) to 1: (batch, d_model).

        In float32 also under autocast: with a learned decay the weights span orders of magnitude.
        """
        age = torch.linspace(1, 0, encoded.shape[1], device=encoded.device)
        weights = (self.decay.float() * age).exp() * mask
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
        return (encoded.float() * weights[..., None]).sum(dim=1)
