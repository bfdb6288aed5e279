"""SIM v0: frames and telemetry as a short prefix of embeddings, through a frozen language model.

frames (F) → vision encoder (frozen) → segments (K) → projector ┐
telemetry (8) → MLP ────────────────────────────────────────────┼→ language model (frozen) → heads
task token ─────────────────────────────────────────────────────┘

Part of the exported script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projects.sim.labels import LABELS, TELEMETRY, ModelError
from projects.sim.llm import FrozenLM, open_llm
from projects.sim.vision import encoded, open_vision

PLAIN_STD = 0.02
"""Of the task token where there is no language model."""
STATISTICS = ("telemetry_mean", "telemetry_std", "feature_mean", "feature_std")
LEAST_STD = 1e-6


class SimNetwork(nn.Module):
    """The model. Without a language model its place is taken by the mean of the prefix, which trains nothing more.

    Args:
        llm, vision: frozen. Without `vision` a batch has features, not frames.
        dv: width of a frame's features; 0 where there are no frames, so no visual tokens.
        d: width of the prefix, that of the language model.
        frames, tokens: F frames become K segments.
        confidence: whether there is a head that says how sure the others may be.
        inputs: `frames` or `telemetry` alone leaves the other's tokens out, for comparison.
    """

    segments: Tensor
    telemetry_mean: Tensor
    telemetry_std: Tensor
    feature_mean: Tensor
    feature_std: Tensor

    def __init__(
        self, llm: FrozenLM | None, vision: nn.Module | None, *,
        dv: int, d: int, frames: int, tokens: int, confidence: bool = False, inputs: str = "both",
    ) -> None:  # fmt: skip
        super().__init__()
        if llm is not None and llm.width != d:
            raise ModelError(f"model.d is {d}, but the language model is {llm.width} wide; set model.d to {llm.width}.")
        if dv and vision is not None and (found := int(getattr(vision, "dv", dv))) != dv:
            raise ModelError(f"model.dv is {dv}, but the vision encoder gives {found}; set model.dv to {found}.")
        if inputs == "frames" and not dv:
            raise ModelError("model.inputs is frames, but the data has none; expected both or telemetry.")
        self.llm, self.vision, self.inputs = llm, vision, inputs
        self.std = llm.std if llm is not None else PLAIN_STD
        if dv and inputs != "telemetry":
            self.projector = nn.Linear(dv, d)
        if inputs != "frames":
            self.telemetry = nn.Sequential(nn.Linear(len(TELEMETRY), d), nn.GELU(), nn.Linear(d, d))
        self.task_token = nn.Parameter(self.std * torch.randn(d))
        widths = {task: len(names) for task, names in LABELS.items()} | ({"confidence": 1} if confidence else {})
        self.heads = nn.ModuleDict({task: nn.Linear(d, width) for task, width in widths.items()})
        self.register_buffer("segments", segment_weights(frames, tokens), persistent=False)
        for name in STATISTICS:
            self.register_buffer(name, torch.zeros(len(TELEMETRY) if "telemetry" in name else dv))

    def train(self, mode: bool = True) -> SimNetwork:
        """The frozen parts stay in eval mode: they have dropout and running means of their own."""
        super().train(mode)
        for part in (self.llm, self.vision):
            if part is not None:
                part.eval()
        return self

    def set_statistics(self, telemetry: Tensor, features: Tensor | None) -> None:
        """Take mean and deviation of the training data: telemetry (n, 8), features (n, dv)."""
        for name, values in (("telemetry", telemetry), ("feature", features)):
            if values is not None:
                deviation, mean = torch.std_mean(values.double(), dim=0, correction=0)
                getattr(self, f"{name}_mean").copy_(mean)
                getattr(self, f"{name}_std").copy_(deviation.where(deviation >= LEAST_STD, torch.ones_like(deviation)))

    def tokens(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The prefix: (batch, tokens, d), K of the frames, one of the telemetry, the task's. Of the size of a word's
        embedding, as the language model was trained on."""
        parts: list[Tensor] = []
        count = len(batch["telemetry"])
        if "projector" in self._modules:
            features = (self._features(batch) - self.feature_mean) / self.feature_std
            parts.append(self.projector(self.segments @ features))
        if "telemetry" in self._modules:
            telemetry = (batch["telemetry"] - self.telemetry_mean) / self.telemetry_std
            parts.append(self.telemetry(telemetry)[:, None])
        tokens = torch.cat(parts, dim=1)
        scaled = self.std * F.layer_norm(tokens.float(), tokens.shape[-1:])
        return torch.cat([scaled, self.task_token.expand(count, 1, -1)], dim=1)

    def _features(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Of every frame: (batch, F, dv)."""
        if "vis_feats" in batch:
            return batch["vis_feats"]
        if self.vision is None:
            raise ModelError("the batch has frames and the model no vision encoder; name one as model.vision.")
        frames = batch["frames"]
        with torch.no_grad():  # nothing before the encoder is trained, so no gradient has to pass through it
            features = encoded(self.vision, frames.flatten(0, 1))
        return features.view(*frames.shape[:2], -1)

    def forward(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Logits `risk_logits: (batch, 4)`, `reason_logits`, `action_logits` and, with that head, `confidence_logits`.

        batch: `telemetry: (batch, 8)` in its own units, `vis_feats: (batch, F, dv)` or `frames: (batch, F, 3, H, W)`.
        """
        prefix = self.tokens(batch)
        readout = prefix.mean(dim=1) if self.llm is None else self.llm(prefix)
        with torch.autocast(readout.device.type, enabled=False):  # heads and losses in fp32, whatever the rest is in
            readout = F.layer_norm(readout.float(), readout.shape[-1:])
            return {f"{task}_logits": head(readout) for task, head in self.heads.items()}

    @torch.no_grad()
    def predict_json(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What a program reads of each sample: label and probabilities by name for risk, reason and action."""
        if not self.telemetry_std.any():
            raise ModelError(
                "the telemetry has no statistics (telemetry_mean, telemetry_std); load the trained weights."
            )
        output = self.eval()(batch)
        chances = {task: output[f"{task}_logits"].softmax(1).cpu() for task in LABELS}
        samples = []
        for row in range(len(chances["risk"])):
            said: dict[str, Any] = {"sample_id": batch["sample_id"][row]} if "sample_id" in batch else {}
            for task, names in LABELS.items():
                found = chances[task][row].tolist()
                best = max(range(len(names)), key=found.__getitem__)
                said[task] = {"label": names[best], "id": best, "probabilities": dict(zip(names, found, strict=True))}
            if "confidence_logits" in output:
                said["confidence"] = float(output["confidence_logits"][row].sigmoid())
            samples.append(said)
        return samples


def segment_weights(frames: int, tokens: int) -> Tensor:
    """What averages F frames into K segments: (tokens, frames). Segment i covers the frames from ⌊i·F/K⌋ to before
    ⌈(i+1)·F/K⌉, as adaptive average pooling does."""
    weights = torch.zeros(tokens, frames)
    for token in range(tokens):
        first, stop = token * frames // tokens, -(-(token + 1) * frames // tokens)
        weights[token, first:stop] = 1 / (stop - first)
    return weights


def trainable_names(network: SimNetwork) -> set[str]:
    """What trains: the model's own parts, all of them and nothing else. Raises `ModelError` where it is not so."""
    expected = {name for name, _ in network.named_parameters() if not name.startswith(("llm.", "vision."))}
    known = {"projector", "telemetry", "task_token", "heads"}
    found = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    if found != expected or not found or not {name.split(".")[0] for name in found} <= known:
        wrong = ", ".join(sorted(found ^ expected)[:3]) or "none"
        raise ModelError(f"the parameters that train are not those of {', '.join(sorted(known))}: {wrong}.")
    return found


def build(settings: Mapping[str, Any]) -> SimNetwork:
    """The model that `settings` describe, without its weights: a config's `model` with dv known, or an export's.

    Raises `ModelError`.
    """
    llm = None
    if settings["llm"] != "none":
        names = {"llm_layers": "layers", "llm_dtype": "dtype", "prompt": "prompt", "random_weights": "random_weights"}
        llm = open_llm(settings["llm"], **{own: settings[key] for key, own in names.items()})
    width = settings["d"] or (llm.width if llm is not None else None)
    if width is None:
        raise ModelError("model.d is not set, and without a language model it must be.")
    vision = None if settings["cached"] or not settings["dv"] else open_vision(settings["vision"])
    network = SimNetwork(
        llm, vision, dv=settings["dv"], d=width, frames=settings["frames"], tokens=settings["tokens"],
        confidence=settings["confidence"], inputs=settings["inputs"],
    )  # fmt: skip
    trainable_names(network)
    return network
