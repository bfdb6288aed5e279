"""What the numbers of an attempt come from beside its config: code, versions, machine and data.

An engine records it when it starts, in `attempts/<n>.provenance.json`; nothing here needs torch, so that a replay or a
resume can show before it starts what has changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.reading import read_json
from engines.contract import spec as specs
from engines.contract.rundir import RunDirectory
from engines.host.facts import device_name, gpu_model
from engines.runs import fingerprint
from engines.runs.fingerprint import Fingerprint

if TYPE_CHECKING:
    from engines.contract.config import LoadedConfig

PACKAGES = ("cockpit", "torch", "numpy", "msgspec")
CODE, COMMIT, DATA = "code", "commit", "data"
NUMERIC = ("python", "torch", "numpy")
"""Of the versions those that numbers depend on; the program's own code is compared file by file."""
VARIABLES = (
    "ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "MKL_CBWR", "NVIDIA_TF32_OVERRIDE", "ONEDNN_MAX_CPU_ISA",
    "PYTHONHASHSEED", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)  # fmt: skip
"""Of the environment what makes libraries compute otherwise."""
ENGINE = Path(__file__).resolve().parent.parent


class Provenance(msgspec.Struct, kw_only=True):
    """What an attempt was made with."""

    facts: dict[str, str]
    """By name, in the order they are listed; what is not known is absent."""
    data: Fingerprint | None = None
    """None where it is not known."""


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on, without importing them."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def git_hash() -> str | None:
    """Commit of the code that runs, None outside a checkout."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(ENGINE.parent), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def current(loaded: LoadedConfig) -> Provenance:
    """What a training with this config would be made with, here and now. Reads data: it may take a second."""
    settings, known = loaded.settings, versions()
    facts = {name: known[name] for name in NUMERIC if name in known}
    facts[CODE] = _code(loaded.spec.project)
    if (commit := git_hash()) is not None:
        facts[COMMIT] = commit[:10]
    device = device_name(settings.launch.device)
    facts["device"] = gpu_model(device) or device.partition(":")[0]
    facts["processor"] = _processor()
    facts["threads"] = str(settings.launch.threads or len(os.sched_getaffinity(0)))
    facts["ranks"] = f"{settings.launch.nodes} × {settings.launch.devices}" if settings.launch.several else "1"
    facts["micro-batches"] = str(settings.training.micro_batches)
    facts |= {name: os.environ.get(name, "not set") for name in VARIABLES}
    return Provenance(facts=facts, data=_data(loaded))


def _data(loaded: LoadedConfig) -> Fingerprint | None:
    listing, settings = loaded.spec.data_files, loaded.settings
    if listing is None:
        return {}
    try:
        return fingerprint.take(Path(settings.data.path).expanduser(), specs.load_function(listing)(settings))
    except Exception:  # a third party's function may fail in any way; this is no reason to train nothing
        return None


def record(run: RunDirectory, attempt: int, made_with: Provenance) -> None:
    """Write it down for later. A disk that is full is somebody else's to tell."""
    with contextlib.suppress(OSError):
        files.replace_bytes(run.provenance(attempt), msgspec.json.encode(made_with))


def recorded(run: RunDirectory) -> list[Provenance]:
    """Of every attempt that came to train; where none left a record, what the supervisors knew."""
    numbers = run.attempt_numbers()
    found, known = [], []
    for number in numbers:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(read_json(run.provenance(number), Provenance))
    for number in [] if found else numbers:
        with contextlib.suppress(DataError):
            told = run.attempt(number).versions
            known.append(Provenance(facts={name: told[name] for name in NUMERIC if name in told}))
    return found or known


def why_other_data(run: RunDirectory, wanted: LoadedConfig) -> str:
    """Why the data that `wanted` names cannot stand for what `run` was trained on; empty where it is the same."""
    then = next((one.data for one in reversed(recorded(run)) if one.data), None)
    if then is None:
        return "the data the run was trained on is not recorded: move it back to its old path, or link that path to it"
    now = _data(wanted)
    words = "it cannot be read" if now is None else fingerprint.changes(then, now)
    return f"it is not the data the run was trained on: {words}" if words else ""


def since_the_newest(run: RunDirectory, loaded: LoadedConfig) -> list[str]:
    """What has changed since the newest attempt, a sentence each; `loaded` is the config it had."""
    then = recorded(run)[-1:]
    if not then:
        return []
    path = Path(loaded.settings.data.path).expanduser()
    gone = bool(then[0].data) and not path.exists()
    advice = f"there is no data at {path}; if it lies elsewhere now, resume with --set data.path=/its/place"
    return [*changed(then, current(loaded)), *[advice] * gone]


def changed(then: Sequence[Provenance], now: Provenance, *, doubts: bool = False) -> list[str]:
    """What is another thing now than in any of the attempts `then`, a sentence each; `doubts`: what may be, too."""
    lines: list[str] = []
    for name in now.facts:
        known = list(dict.fromkeys(one.facts[name] for one in then if name in one.facts))
        if name != COMMIT and any(value != now.facts[name] for value in known):
            lines.append(f"{name}: {_code_words(then, now) if name == CODE else _words(known, now.facts[name])}")
    data = [one.data for one in then if one.data is not None]
    if data and now.data is not None:
        said = [fingerprint.changes(one, now.data) for one in data]
        said += [fingerprint.doubts(one, now.data) for one in data] if doubts else []
        lines += [f"{DATA}: {words}" for words in dict.fromkeys(said) if words]
    return [f"changed since then: {line}" for line in lines]


def _words(known: Sequence[str], now: str) -> str:
    return f"{', then '.join(known)} → {now}"


def _code_words(then: Sequence[Provenance], now: Provenance) -> str:
    """By the commits where they tell it; files may be edited without one."""
    commits = list(dict.fromkeys(one.facts[COMMIT] for one in then if COMMIT in one.facts))
    here = now.facts.get(COMMIT, "")
    if here and any(commit != here for commit in commits):
        return f"commit {_words(commits, here)}"
    return "engine or project files edited" + (f" since commit {here}" if here else "")


def _code(project: str) -> str:
    """Digest of every source file of the engine and of the project's package: more than a commit can tell."""
    digest = hashlib.blake2b(digest_size=8)
    for path in (*_sources(ENGINE), *_project_sources(project.partition(":")[0])):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _project_sources(module: str) -> Iterator[Path]:
    """Of the package that the module belongs to, or of the module alone."""
    package = module.rpartition(".")[0]
    with contextlib.suppress(ImportError, ValueError):
        if (found := importlib.util.find_spec(package or module)) is None:
            return
        for folder in found.submodule_search_locations or ():
            yield from _sources(Path(folder))
        if not package and found.origin is not None:
            yield Path(found.origin)


def _processor() -> str:
    """Its model: libraries choose their kernels by what it can do."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
