"""`cockpit check` on a GPU: what it reckons of memory and time against what a try measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu.conftest import DEVICE, ON_GPU, command, needs_driver
from tests.gpu.trainers import CONFIG

pytestmark = [pytest.mark.gpu, *ON_GPU]
Record = Callable[[str, object], None]


@pytest.mark.parametrize("size", ["demo", pytest.param("large", marks=needs_driver)])
def test_what_is_reckoned_is_near_what_is_measured(
    size: str, recordings: Path, runs: Path, record_property: Record
) -> None:
    """Activations rule the large one's memory, the workspaces of libraries the small one's."""
    settings = [f"data.path={recordings}", f"launch.device={DEVICE}", "cost.usd_per_hour=3.6"]
    if size == "large":
        model = {"d_model": 512, "num_layers": 6, "dim_feedforward": 2048}
        settings += [*(f"model.{key}={value}" for key, value in model.items()), "training.batch_size=1024"]
    sets = [part for setting in settings for part in ("--set", setting)]
    plain = json.loads(command("check", str(CONFIG), *sets, "--json"))
    tried = json.loads(command("check", str(CONFIG), *sets, "--json", "--try", "--try-seconds", "6"))
    assert (plain["faults"], tried["faults"]) == ([], [])
    assert plain["device"].startswith(DEVICE)
    found = tried["try"]
    assert found["resumed_equal"]
    assert (found["peak_memory_of"] == "GPU") == (DEVICE == "cuda")
    reckoned, peak = plain["memory"]["total"], found["peak_memory"]
    record_property(f"memory reckoned and at most, MB, {size}", (reckoned / 1e6, peak / 1e6))
    record_property(f"memory by part, MB, {size}", {name: part / 1e6 for name, part in plain["memory"].items()})
    record_property(f"ms a step, of a few and of a try, {size}", (
        1e3 * plain["time"]["per_step"]["median"], 1e3 * found["seconds_per_step"]["median"],
    ))  # fmt: skip
    record_property(f"share of a step spent on its batch, {size}", found["data_wait"])
    record_property(f"evaluation, save, resume, s, {size}", [
        found[f"{what}_seconds"] for what in ("evaluation", "save", "resume")
    ])  # fmt: skip
    if size == "large":
        assert 0.5 < reckoned / peak < 1.5
