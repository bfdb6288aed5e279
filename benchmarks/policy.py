"""Milliseconds a frame of the controls policy on one CPU core, at full size (3.5M parameters, float32).

Three ways to the same answer take turns, ten frames each: the policy's own step, which embeds only the newest row; the
whole window made again and given to the model, as anyone would; and the exported graph on the same window. Medians.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.controls_data import random_recordings
from benchmarks.measure import Measurement
from projects.controls.export_run import export_graph
from projects.controls.exported import DEFAULT_HOTBAR_CONFIDENCE, DEFAULT_THRESHOLD, ExportedConfig
from projects.controls.features import window_features
from projects.controls.layout import ACTION, HISTORY, INV, LEAKING_STATE, WINDOW
from projects.controls.model import ControlTransformer
from projects.controls.policy import ControlPolicy
from projects.controls.policy.network import Outputs, PolicyNetwork, outputs
from projects.controls.recordings import Recording

FRAMES = 300
BLOCK = 10
"""Frames on end, so that each side finds its weights in the cache, as when it has the core to itself."""
SHOWN = WINDOW + HISTORY + 1
"""Frames that a window's features are made from: 30 rows, five past controls, and one for the velocity."""
BUDGET = 8.0
"""Milliseconds a frame that a step may take."""
TOLERANCE = 1e-5


def measure() -> list[Measurement]:
    """The policy's step against 8 ms, against the whole window, and the graph against the whole window."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ControlTransformer().eval().requires_grad_(False)
    policy = _policy(model)
    graph = torch.export.load(io.BytesIO(export_graph(model))).module()
    session = random_recordings(sessions=1, frames=SHOWN + FRAMES, seed=0)[0]
    times: dict[str, list[float]] = {"step": [], "window": [], "graph": []}
    work: list[float] = []  # what of the step's time the core worked for it: tells a busy machine from a slow step

    def timed(name: str, answer: Callable[..., Outputs], *arguments: object) -> Outputs:
        began, worked = time.perf_counter(), time.thread_time()
        found = answer(*arguments)
        times[name].append(1000 * (time.perf_counter() - began))
        if name == "step":
            work.append(1000 * (time.thread_time() - worked))
        return found

    for k in range(SHOWN):
        _step(policy, session, k)
    for start in range(SHOWN, SHOWN + FRAMES, BLOCK):
        block = range(start, start + BLOCK)
        ours = [timed("step", _step, policy, session, k) for k in block]
        for name, module in (("window", model), ("graph", graph)):
            for k, answer in zip(block, ours, strict=True):
                found = timed(name, _window, module, session, k)
                for head, values in vars(answer).items():
                    assert np.allclose(values, getattr(found, head), atol=TOLERANCE), (head, k)
    step, window, graph_time = (statistics.median(found) for found in times.values())
    worst = statistics.quantiles(times["step"], n=100)[-1]
    note = f"{statistics.median(work):.2f} ms of it processor time; 99 % of {FRAMES} frames within {worst:.1f} ms"
    return [
        _against("policy", step, BUDGET, "≥ 1", note),
        _against("policy_to_window", step, window, "—", "theirs: every row's features and embedding made again"),
        _against("policy_graph", graph_time, window, "—", "the exported graph, its rows made again as well"),
    ]


def _policy(model: ControlTransformer) -> ControlPolicy:
    thresholds = np.full(len(ACTION) + len(INV), DEFAULT_THRESHOLD)
    config = ExportedConfig(
        policy=Path(), model={}, action=thresholds[: len(ACTION)], inv=thresholds[len(ACTION) :],
        hotbar_confidence=DEFAULT_HOTBAR_CONFIDENCE, lagged_state=LEAKING_STATE,
    )  # fmt: skip
    return ControlPolicy(config, PolicyNetwork(model))


def _step(policy: ControlPolicy, session: Recording, k: int) -> Outputs:
    answer = policy.step(session.frames[k], session.state[k], float(session.timestamps[k])).raw
    policy.observe(session.controls[k])  # the same history on all sides
    return answer


@torch.inference_mode()
def _window(module: torch.nn.Module, session: Recording, k: int) -> Outputs:
    newest = slice(k - SHOWN + 1, k + 1)
    shown = replace(
        session, frames=session.frames[newest], controls=session.controls[newest], state=session.state[newest]
    )
    features, mask = window_features(shown, SHOWN - 1)
    return outputs(module(torch.from_numpy(features)[None], torch.from_numpy(mask)[None]))


def _against(name: str, ours: float, theirs: float, reach: str, note: str) -> Measurement:
    return Measurement(
        name=name, ours=ours, theirs=theirs, unit="ms/frame", ratio=theirs / ours, reach=reach, note=note
    )
