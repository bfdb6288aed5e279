"""The GPU: driver and cards by NVML, and whether torch and mamba-ssm fit them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cockpit.core.doctor.finding import Finding, fail, ok, warn
from cockpit.core.engine_question import EngineQuestion
from engines.basics.errors import UserError
from engines.contract.references import PIP_INSTALL
from engines.contract.shipped import CLONE
from engines.host.machine import open_nvml

KERNELS = f"{PIP_INSTALL} --no-build-isolation 'mamba-ssm==2.3.1' causal-conv1d"
REBUILT = "rm -rf .venv && COCKPIT_TORCH='{}' ./run --version" if CLONE else f"{PIP_INSTALL} --force-reinstall '{{}}'"
"""Set up again with another torch."""
REPAIRED = "rm -rf .venv && ./run --version" if CLONE else REBUILT.format("torch")
NEWEST = "torch>=2.6"
BUILDS = {13: NEWEST, 12: "torch==2.9.1"}
"""The newest torch on the package index whose build is for this CUDA, by its major number."""


@dataclass(frozen=True)
class GpuFacts:
    """What the driver and torch say."""

    no_gpu: str
    """Why NVML shows no card; empty where it does."""
    driver: str = ""
    cuda: tuple[int, int] = (0, 0)
    """The newest CUDA that the driver runs."""
    cards: Sequence[str] = ()
    torch: Mapping[str, Any] = field(default_factory=dict)
    """The answer of `engines.torch_facts`; empty where it has none."""
    torch_error: str = ""


def read_gpu() -> GpuFacts:
    """Ask the driver, and torch in a process of its own, which takes seconds."""
    nvml, no_gpu = open_nvml()
    driver, cuda, cards = "", (0, 0), []
    if nvml is not None:
        with contextlib.suppress(nvml.NVMLError):
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            number = nvml.nvmlSystemGetCudaDriverVersion_v2()
            cuda = (number // 1000, number % 1000 // 10)
            for index in range(nvml.nvmlDeviceGetCount()):
                cards.append(_text(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))))  # noqa: PERF401
        no_gpu = "" if cards else "the driver shows no card"
    try:
        torch, error = EngineQuestion("engines.torch_facts", []).answer(), ""
    except UserError as problem:
        torch, error = {}, str(problem).splitlines()[-1][:300]
    return GpuFacts(no_gpu, driver, cuda, cards, torch, error)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def gpu_findings(facts: GpuFacts) -> Iterator[Finding]:
    """Findings about cards, torch and mamba-ssm, as far as they can be asked."""
    if facts.no_gpu:
        yield ok("GPU", f"There is no GPU ({facts.no_gpu}); training runs on the CPU.")
    else:
        newest = ".".join(map(str, facts.cuda))
        yield ok("GPU", f"{', '.join(facts.cards)}; driver {facts.driver} runs CUDA up to {newest}.")
    if not facts.torch:
        yield fail("torch", f"torch does not import: {facts.torch_error}.", REPAIRED)
        return
    yield _torch(facts)
    if facts.torch["available"]:
        yield _mamba(facts.torch["mamba"])


def _torch(facts: GpuFacts) -> Finding:
    version, built = facts.torch["version"], facts.torch["cuda"]
    words = f"torch {version}" + (f" is built for CUDA {built}" if built else " is a build for the CPU")
    if facts.no_gpu:
        return ok("torch", f"{words}.")
    fix = _other_build(facts.cuda)
    if built is None:
        return fail("torch", f"{words}; the GPU is not used.", fix)
    if _version(built)[0] > facts.cuda[0]:
        newest = ".".join(map(str, facts.cuda))
        return fail("torch", f"{words}, and the driver runs CUDA up to {newest}: the GPU cannot be used.", fix)
    if facts.torch["error"] or not facts.torch["available"]:
        why = facts.torch["error"] or "CUDA_VISIBLE_DEVICES may hide it"
        return fail("torch", f"{words} and does not reach the GPU: {why}.", "nvidia-smi; echo $CUDA_VISIBLE_DEVICES")
    if missed := [card for card in facts.torch["cards"] if not card["supported"]]:
        text = f"{words} and has no code for {missed[0]['name']} (compute capability {missed[0]['capability']})."
        return fail("torch", text, fix)
    return ok("torch", f"{words}, and reaches {len(facts.torch['cards'])} of {len(facts.cards)} cards.")


def _version(text: str) -> tuple[int, int]:
    numbers = [int(part) for part in re.findall(r"\d+", text)[:2]]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _other_build(cuda: tuple[int, int]) -> str:
    """How to get a torch that a driver with this CUDA runs."""
    fitting = [build for major, build in BUILDS.items() if major <= cuda[0]]
    return REBUILT.format(fitting[0]) if fitting else "choose a machine with a driver for CUDA 12 or newer"


def _mamba(mamba: Mapping[str, str]) -> Finding:
    if mamba["version"] and not mamba["error"]:
        return ok("mamba-ssm", f"mamba-ssm {mamba['version']} computes melee's Mamba-2.")
    if mamba["version"]:
        text = f"mamba-ssm {mamba['version']} does not import ({mamba['error']}); melee uses its own Mamba-2, in torch."
        return warn("mamba-ssm", text, f"{KERNELS} --force-reinstall --no-deps")
    return warn("mamba-ssm", "mamba-ssm is not installed; melee uses its own Mamba-2, in torch.", KERNELS)
