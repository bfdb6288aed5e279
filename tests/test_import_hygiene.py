"""What each side imports when it really runs: import-linter reads the source, these look at `sys.modules`."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import cockpit.core
import engines.basics
import engines.contract
import engines.host
import engines.reporter
import engines.runs
import engines.runtime
import engines.supervisor
import engines.thresholds
from engines.contract.spec import Spec, installed

TORCH_SIDE = {"torch", "safetensors", "engines.training", "engines.tasks"}
SCREEN_SIDE = {"textual"}

RUNNING_COCKPIT = """
import asyncio
from pathlib import Path
from cockpit.app import CockpitApp

async def look() -> None:
    async with CockpitApp(folder=Path({folder!r})).run_test() as pilot:
        await pilot.press("question_mark")
        await pilot.pause()

asyncio.run(look())
"""


def modules_of(package: object) -> list[str]:
    name, paths = package.__name__, package.__path__  # type: ignore[attr-defined]
    return [name, *(found.name for found in pkgutil.walk_packages(paths, f"{name}."))]


def loaded_by(code: str) -> set[str]:
    """The modules in a fresh interpreter after `code`."""
    report = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-P", "-c", code + report], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


READS_CONFIGS = {
    "engines.contract.config", "engines.contract.settings", "engines.runs.resume", "engines.runtime.staging",
}  # fmt: skip
SPECS = [point.value.partition(":")[0] for point in metadata.entry_points(group="cockpit.projects")]
ASKED = [
    reference.partition(":")[0]
    for spec in installed().values()
    if isinstance(spec, Spec)
    for reference in (spec.thresholds, spec.reads)
    if reference
]
"""What the cockpit asks of a project in its own process."""
PACKAGES = (
    engines.basics, engines.contract, engines.host, engines.runs, engines.runtime, engines.supervisor, engines.reporter,
    engines.thresholds,
)  # fmt: skip
LIGHT = {"engines.supervise", *(name for package in PACKAGES for name in modules_of(package)), *SPECS, *ASKED}


def test_the_cockpits_command_and_core_need_neither_torch_nor_a_screen() -> None:
    loaded = loaded_by(f"import cockpit.cli, {', '.join(modules_of(cockpit.core))}")
    assert sorted(loaded & (TORCH_SIDE | SCREEN_SIDE)) == []


def test_a_running_cockpit_has_no_torch_and_no_pydantic(tmp_path: Path) -> None:
    loaded = loaded_by(RUNNING_COCKPIT.format(folder=str(tmp_path)))
    assert "textual" in loaded
    assert sorted(loaded & (TORCH_SIDE | {"pydantic"})) == []


@pytest.mark.parametrize(
    ("modules", "unwanted"), [(LIGHT - READS_CONFIGS, {"pydantic"}), (READS_CONFIGS, set())], ids=["light", "config"]
)
def test_what_the_cockpit_may_import_stays_light(modules: set[str], unwanted: set[str]) -> None:
    """All of them in one process: what one drags in is seen; which one, the import arrows tell."""
    loaded = loaded_by(f"import {', '.join(sorted(modules))}")
    assert sorted(loaded & (TORCH_SIDE | SCREEN_SIDE | {"cockpit"} | unwanted)) == []


def test_the_training_side_knows_no_cockpit() -> None:
    loaded = loaded_by(f"import engines.train, engines.training.engine, {', '.join(SPECS)}")
    assert sorted(loaded & (SCREEN_SIDE | {"cockpit"})) == []
