"""A training step of SIM against the same model written plainly with transformers: forward, loss, backward, AdamW.

`sim_step_30_bf16_64_raw`: 30 layers of the language model in bf16, a batch of 64, raw frames in place of features.

The language model has the shape of SmolLM2-135M (576 wide) and random weights, so nothing is loaded. Both sides have
equal weights; their gradients are compared before anything is timed. They take turns on one core, and in
which goes first; medians.
"""

from __future__ import annotations

import copy
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import Measurement
from projects.sim.labels import LABELS
from projects.sim.llm import DTYPES, FrozenLM
from projects.sim.losses import ClassWeights, sim_losses
from projects.sim.network import SimNetwork
from projects.sim.vision import open_vision

WIDTH, FRAMES, TOKENS, FEATURES = 576, 8, 4, 1280
SHAPE: dict[str, Any] = {
    "hidden_size": WIDTH, "intermediate_size": 1536, "num_attention_heads": 9, "num_key_value_heads": 3,
    "vocab_size": 512, "max_position_embeddings": 2048,
}  # fmt: skip
LAYERS, KINDS = (6, 30), ("fp32", "bf16")
TURNS = {8: 15, 64: 7}
"""How often each side steps, by the size of the batch: a short step differs more from turn to turn."""
TOLERANCE = 1e-5
EVEN = ClassWeights({task: torch.ones(len(names)) for task, names in LABELS.items()})


class Plain(nn.Module):
    """What anyone would write: transformers' defaults, a loop over the segments."""

    def __init__(self, ours: SimNetwork, llm: nn.Module) -> None:
        super().__init__()
        self.own, self.llm = (
            copy.deepcopy(nn.ModuleDict({"projector": ours.projector, "telemetry": ours.telemetry})),
            llm,
        )
        self.heads, self.task_token = copy.deepcopy(ours.heads), copy.deepcopy(ours.task_token)
        self.vision: Any = ours.vision
        self.ours = [ours]

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        ours = self.ours[0]
        if "frames" in batch:
            with torch.no_grad():
                features = self.vision(batch["frames"].flatten(0, 1)).view(len(batch["frames"]), FRAMES, -1)
        else:
            features = batch["vis_feats"]
        features = (features - ours.feature_mean) / ours.feature_std
        each = FRAMES // TOKENS
        tokens = [self.own["projector"](features[:, each * k : each * (k + 1)].mean(1)) for k in range(TOKENS)]
        tokens.append(self.own["telemetry"]((batch["telemetry"] - ours.telemetry_mean) / ours.telemetry_std))
        prefix = ours.std * F.layer_norm(torch.stack(tokens, 1), (WIDTH,))
        prefix = torch.cat([prefix, self.task_token.expand(len(prefix), 1, -1)], 1)
        dtype = next(self.llm.parameters()).dtype
        readout = self.llm(inputs_embeds=prefix.to(dtype)).last_hidden_state[:, -1].float()
        readout = F.layer_norm(readout, (WIDTH,))
        return {f"{task}_logits": head(readout) for task, head in self.heads.items()}


def measure() -> list[Measurement]:
    """Every layer count, number format and batch, of cached features and of raw frames (the encoder is `grid`)."""
    torch.set_num_threads(1)  # and processor time, so that a busy machine changes neither side
    torch.manual_seed(0)
    found = []
    for layers, kind, raw in itertools.product(LAYERS, KINDS, (False, True)):
        ours, plain = _pair(layers, kind, raw=raw)
        for count, turns in TURNS.items():
            name = f"{layers}_{kind}_{count}{'_raw' * raw}"
            found.append(_compare(ours, plain, _batch(count, raw=raw), name, kind, turns))
    return found


def _pair(layers: int, kind: str, *, raw: bool) -> tuple[SimNetwork, Plain]:
    from transformers import LlamaConfig, LlamaModel

    make: Any = LlamaModel
    llm = make(LlamaConfig(num_hidden_layers=layers, **SHAPE)).to(DTYPES[kind]).requires_grad_(False).eval()
    vision = open_vision("grid") if raw else None
    width = int(vision.dv) if vision is not None else FEATURES
    ours = SimNetwork(FrozenLM(copy.deepcopy(llm)), vision, dv=width, d=WIDTH, frames=FRAMES, tokens=TOKENS)
    ours.set_statistics(torch.randn(64, 8), torch.randn(64, width))
    return ours.train(), Plain(ours, llm)


def _batch(count: int, *, raw: bool = False) -> dict[str, Tensor]:
    seen = (
        {"frames": torch.rand(count, FRAMES, 3, 120, 160)}
        if raw
        else {"vis_feats": torch.randn(count, FRAMES, FEATURES)}
    )
    labels = {f"{task}_id": torch.randint(0, len(names), (count,)) for task, names in LABELS.items()}
    return {"telemetry": torch.randn(count, 8), "weight": torch.ones(count), **seen, **labels}


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _backward(model: nn.Module, batch: dict[str, Tensor]) -> None:
    losses = sim_losses(model(batch), batch, EVEN)
    torch.stack([loss.total / len(batch["weight"]) for loss in losses.values()]).sum().backward()  # type: ignore[no-untyped-call]


def _step(model: nn.Module) -> Callable[[dict[str, Tensor]], None]:
    optimizer = torch.optim.AdamW(_trained(model), lr=1e-4, fused=True)

    def step(batch: dict[str, Tensor]) -> None:
        optimizer.zero_grad()
        _backward(model, batch)
        optimizer.step()

    return step


def _compare(ours: SimNetwork, plain: Plain, batch: dict[str, Tensor], name: str, kind: str, turns: int) -> Measurement:
    plain.load_state_dict(Plain(ours, plain.llm).state_dict())  # as trained by the comparison before
    for model in (ours, plain):
        model.zero_grad()
        _backward(model, batch)
    own: Any = plain.own["projector"]
    pairs: list[tuple[Any, Any]] = [(ours.projector.weight, own.weight), (ours.task_token, plain.task_token)]
    difference = max(float((one.grad - other.grad).abs().max() / other.grad.abs().max()) for one, other in pairs)
    assert kind != "fp32" or difference <= TOLERANCE, difference
    steps, times = (_step(ours), _step(plain)), ([], [])  # type: tuple[Any, Any], tuple[list[float], list[float]]
    for turn in range(turns):
        for side in (turn % 2, 1 - turn % 2):
            step, taken = steps[side], times[side]
            began = time.process_time()
            step(batch)
            taken.append(1000 * (time.process_time() - began))
    ms, theirs = (statistics.median(taken) for taken in times)
    return Measurement(
        name=f"sim_step_{name}", ours=ms, theirs=theirs, unit="CPU ms a step", ratio=theirs / ms, reach="≥ 1",
        note=f"gradients differ by at most {difference:.1e} of the largest",
    )  # fmt: skip
