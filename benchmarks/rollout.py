"""Frames per second that a world model 768 wide with 4 layers dreams on one core, one game, in float32.

`rollout` carries the state of Mamba-2 from frame to frame; `rollout_window` computes ten frames again for each. Theirs
is what is wanted. The machine's own noise is left out: processor time is measured, the median of several stretches.
"""

from __future__ import annotations

import statistics
import time

import torch

from benchmarks.measure import Measurement
from projects.melee.frames import VOCABULARY, Frames
from projects.melee.rollout import Stream
from projects.melee.world import WorldModel

WANTED = {"rollout": 120.0, "rollout_window": 60.0}
STRETCHES, FRAMES = 7, 40
PAST = 32
WINDOW = 10
TOLERANCE = 1e-3


def measure() -> list[Measurement]:
    torch.set_num_threads(1)
    return [_measure("rollout", carry=True), _measure("rollout_window", carry=False)]


@torch.inference_mode()
def _measure(name: str, *, carry: bool) -> Measurement:
    torch.manual_seed(0)
    size = {"d_model": 768, "n_layers": 4, "plain_blocks": 0}
    model = WorldModel(view="joint", K=WINDOW, carry=carry, **size).eval()  # type: ignore[arg-type]
    past, controls = _frames(PAST), torch.rand(STRETCHES * FRAMES, 1, 2, 13)
    stream = Stream(model, past)
    _check(model, past)
    rates = []
    for stretch in controls.split(FRAMES):  # type: ignore[no-untyped-call]
        began = time.thread_time()
        for control in stretch:
            stream.step(control)
        rates.append(FRAMES / (time.thread_time() - began))
    rate, wanted = statistics.median(rates), WANTED[name]
    count = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    return Measurement(
        name=name, ours=rate, theirs=wanted, unit="frames/s", ratio=rate / wanted, reach="≥ 1",
        note=f"{count:.1f} M parameters, both fighters, rules included",
    )  # fmt: skip


def _check(model: WorldModel, past: Frames) -> None:
    """What is measured is what the whole sequence gives."""
    inputs, led = past.at(slice(None, -1)), past.control[:, 1:]
    whole = model(inputs, led).at(-1)
    memory = model.begin(inputs.at(slice(None, -1)), led[:, :-1])
    said, _ = model.step(inputs.at(-1), led[:, -1], memory)
    torch.testing.assert_close(said.classes["action"], whole.classes["action"], atol=TOLERANCE, rtol=TOLERANCE)


def _frames(time: int) -> Frames:
    nothing = torch.zeros(1, time, 2, 0)
    names = ("action", "jumps", "character", "l_cancel", "hurtbox", "ground", "last_attack")
    ints = torch.stack([torch.randint(VOCABULARY[name], (1, time, 2)) for name in names], dim=-1)
    stage = torch.full((1, time), 24)
    return Frames(torch.rand(1, time, 2, 16), torch.rand(1, time, 2, 13), ints, stage, nothing, nothing.long())
