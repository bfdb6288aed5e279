"""A training step and a dream of the agent against `dreamer4`, at the size of the demo: 96 wide, 4 layers, 9 patches.

The other package lives in an environment that this makes, without its requirements on torch and torchvision: both sides
run on our torch, in processes of their own, by turns and on one core. Medians of processor time over three rounds, some
100 seconds of it in all.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import types
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.measure import Measurement
from projects.agent.dynamics import Actions, Dynamics
from projects.agent.heads import PolicyHead, RewardHead, ValueHead, cloning_loss, reward_loss
from projects.agent.imagine import Dreaming, imagine
from projects.agent.shortcut import shortcut_loss
from projects.agent.twohot import TwoHot

PACKAGES = (
    "dreamer4==0.20.2", "PoPE-pytorch==0.2.1", "adam-atan2-pytorch==0.4.1", "assoc-scan==0.0.6", "beartype==0.23.1",
    "discrete-continuous-embed-readout==0.2.12", "einops==0.8.2", "einx==0.4.3", "frozendict==2.5.1",
    "h-net-dynamic-chunking==0.5.19", "hl-gauss-pytorch==0.3.0", "loguru==0.7.3", "memmap-replay-buffer==0.2.3",
    "torch-einops-utils==0.2.0", "tqdm", "vector-quantize-pytorch==1.32.0", "vit-pytorch==1.26.14",
    "x-mlps-pytorch==0.6.9", "x-transformers==2.31.10",
)  # fmt: skip
CHANNELS, SIDE, WIDTH, LAYERS, HEADS, FINEST, OFFSETS = 6, 3, 96, 4, 4, 8, 8
BATCH, FRAMES, CONTEXT, HORIZON, SHARE = 16, 16, 8, 15, 0.25
ROUNDS, TURNS = 3, 4
Timed = dict[str, Callable[[], None]]


NOTES = {
    "step": "a step of phase 2: world model, rewards and cloning, with half steps on a quarter of the rows; ",
    "world_step": "the world model alone, where both sides spend their time in the same products of matrices",
    "dream": f"{HORIZON} frames of 4 passes after {CONTEXT} true ones, with actions, rewards and values",
    "memory": "what the process grew by at most, its imports left out",
}


def measure() -> list[Measurement]:
    """Steps of phase 2 and of the world model alone, a dream, and memory; parameters are in the notes."""
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder))
        found: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
        for _ in range(ROUNDS):
            for side, runs in found.items():
                runs.append(_run(python, side))
    sizes = {side: runs[0]["parameters"] for side, runs in found.items()}
    ratio = sizes["ours"]["trunk"] / sizes["theirs"]["trunk"]
    assert abs(ratio - 1) <= 0.05, sizes
    parts = (f"{part} {sizes['ours'][part]:,} and {sizes['theirs'][part]:,}" for part in sizes["ours"])
    notes = NOTES | {"step": f"{NOTES['step']}parameters: {', '.join(parts)}"}
    return [_compared(found, name, notes[name]) for name in found["ours"][0]["values"]]


def _compared(found: dict[str, list[dict[str, Any]]], name: str, note: str) -> Measurement:
    ours, theirs = (statistics.median(run["values"][name] for run in found[side]) for side in ("ours", "theirs"))
    unit = "MB" if name == "memory" else "CPU ms"
    reach = "≥ 1.5" if name == "step" else "≥ 1"
    return Measurement(
        name=f"agent_{name}", ours=ours, theirs=theirs, unit=unit, ratio=theirs / ours, reach=reach, note=note
    )


def _environment(folder: Path) -> Path:
    """The interpreter of an environment with the other package and all that ours has."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", *PACKAGES], check=True, capture_output=True)
    return python


def _run(python: Path, side: str) -> dict[str, Any]:
    command = [str(python), "-m", "benchmarks.agent_step", side]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{side} ended with {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _side(side: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    build = _ours if side == "ours" else _theirs()
    before = _megabytes()
    parameters, timed = build()
    values = {}
    for name, work in timed.items():
        work()
        began = time.process_time()
        for _ in range(TURNS):
            work()
        values[name] = 1000 * (time.process_time() - began) / TURNS
    return {"parameters": parameters, "values": values | {"memory": _megabytes() - before}}


def _size(*modules: nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def _stepping(model: nn.Module) -> Callable[[Tensor], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(loss: Tensor) -> None:
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ours() -> tuple[dict[str, int], Timed]:
    dynamics = Dynamics(
        (CHANNELS, SIDE, SIDE), width=WIDTH, layers=LAYERS, heads=HEADS, registers=2, context=32, agent_layers=1,
        finest=FINEST,
    )  # fmt: skip
    policy, reward = PolicyHead(WIDTH, 256, OFFSETS), RewardHead(WIDTH, 256, 1 + OFFSETS, TwoHot(255, 3.0))
    value = ValueHead(WIDTH, 256, TwoHot(255, 5.0))
    step = _stepping(nn.ModuleList([dynamics, policy, reward, value]))
    latents, known = torch.randn(BATCH, FRAMES, CHANNELS, SIDE, SIDE), torch.ones(BATCH, FRAMES, dtype=torch.bool)
    actions = Actions(torch.randint(19, known.shape), torch.randint(2, (*known.shape, 8)).float(), known)
    rewards = torch.randn(BATCH, FRAMES)

    def world(*, with_agent: bool = False) -> tuple[Tensor, Tensor]:
        independent = torch.rand(BATCH) < 0.3
        forced = shortcut_loss(
            dynamics, latents, actions, known, independent=independent, share=SHARE, with_agent=with_agent
        )
        return (forced.loss * forced.weight).mean(), forced.agent

    def phase2() -> None:
        loss, agent = world(with_agent=True)
        said = reward_loss(reward, agent, rewards, known, known)
        done = cloning_loss(policy(agent), actions.movement, actions.abilities, known, known)
        step(loss + said.total / said.count + done.total / done.count)

    def dream() -> None:
        first = slice(CONTEXT)
        found = imagine(
            dynamics, policy, reward, latents[:, first], actions.at(first), known[:, first], HORIZON, Dreaming()
        )
        with torch.no_grad():
            value(found.agent)

    sizes = {"trunk": _size(dynamics), "heads": _size(policy, reward, value)}
    return sizes, {"step": phase2, "world_step": lambda: step(world()[0]), "dream": dream}


def _stub(name: str, **contents: Any) -> None:
    """A module of which no more than its names is asked for: pictures, trainers and environments are not used."""
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module


def _theirs() -> Callable[[], tuple[dict[str, int], Timed]]:
    _stub("torchvision", transforms=None)
    _stub("torchvision.transforms")
    _stub("torchvision.models", VGG16_Weights=types.SimpleNamespace(DEFAULT=None))
    names = ("VideoTokenizerTrainer", "BehaviorCloneTrainer", "DreamTrainer")
    _stub("dreamer4.trainers", **dict.fromkeys(names))
    _stub("dreamer4.env", DynamicsWorldModelWrapper=None)
    package: Any = importlib.import_module("dreamer4.dreamer4")

    def build() -> tuple[dict[str, int], Timed]:
        model: Any = package.DynamicsWorldModel(
            dim=WIDTH, dim_latent=CHANNELS, num_latent_tokens=SIDE**2, num_spatial_tokens=SIDE**2, attn_heads=HEADS,
            attn_dim_head=WIDTH // HEADS, depth=LAYERS, num_register_tokens=1, max_steps=FINEST,
            num_discrete_actions=(19, *[2] * 8), multi_token_pred_len=OFFSETS, predict_terminals=False,
            reward_encoder_type="symexp_two_hot", transformer_kwargs={"use_attn_pool": False},
        )  # fmt: skip
        step = _stepping(model)
        latents, rewards = torch.randn(BATCH, FRAMES, SIDE**2, CHANNELS), torch.randn(BATCH, FRAMES)
        actions = torch.randint(2, (BATCH, FRAMES, 9))
        turn = 0

        def shared() -> None:
            """Theirs makes half steps for a whole batch or for none: one batch in four is a quarter of all rows."""
            nonlocal turn
            model.prob_shortcut_train = float(turn % TURNS == 0)
            turn += 1

        def phase2() -> None:
            shared()
            step(model(latents=latents, rewards=rewards, discrete_actions=actions))

        def world() -> None:
            shared()
            step(model(latents=latents, discrete_actions=actions, add_autoregressive_action_loss=False))

        def dream() -> None:
            with torch.no_grad():
                model.generate(
                    time_steps=CONTEXT + HORIZON, num_steps=4, batch_size=BATCH, prompt_latents=latents[:, :CONTEXT],
                    prompt_discrete_actions=actions[:, :CONTEXT], prompt_rewards=rewards[:, :CONTEXT],
                    return_agent_actions=True, return_rewards_per_frame=True, return_log_probs_and_values=True,
                )  # fmt: skip

        trunk = _size(model.transformer)
        return {"trunk": trunk, "heads": _size(model) - trunk}, {"step": phase2, "world_step": world, "dream": dream}

    return build


if __name__ == "__main__":
    print(json.dumps(_side(sys.argv[1])))
