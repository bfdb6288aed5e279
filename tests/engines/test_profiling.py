"""`cockpit check --profile`: the parts of a step, the trace, and what it says to change."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engines.checking import profiling
from engines.checking.profiling import Profile, advice, measured, tables
from engines.contract import spec as specs
from engines.contract.tables import Table
from tests.engines.toy import ToyRun
from tests.gpu.trainers import Quiet

GPU = Profile(
    device="cuda", amp="bf16", step=0.010, busy=0.25, launches=900, longest={"gemm": 0.001},
    parts={"data": 0.001, "forward": 0.003, "backward": 0.004, "optimizer": 0.001},
)  # fmt: skip


class InFolder(Quiet):
    """A task context whose run lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def test_the_parts_of_a_step_are_timed_and_named_in_the_trace(tmp_path: Path) -> None:
    """Also over the end of an epoch, which has eight steps."""
    toy = ToyRun(tmp_path / "run")
    with toy.trainer.batches:
        found = measured(toy.trainer, InFolder(tmp_path), tmp_path / profiling.TRACE)
    assert list(found.parts) == ["data", "forward", "backward", "optimizer"]
    assert found.busy is None
    assert 0 < sum(found.parts.values()) < found.step
    events = json.loads(gzip.decompress((tmp_path / profiling.TRACE).read_bytes()))["traceEvents"]
    names = Counter(event["name"] for event in events if event.get("cat") == "user_annotation")
    assert {name: names[name] for name in found.parts} == dict.fromkeys(found.parts, profiling.STEPS)
    assert any(name.startswith("aten::") for name in found.longest)


def test_the_report_adds_up() -> None:
    made = tables(GPU)
    assert list(made) == ["where the time goes", "longest kernels", "what to change"]
    rows = {row[0]: row[1:] for row in made["where the time goes"].rows}
    assert rows["rest (log, commands)"] == (1.0, 10.0)
    assert rows["whole step"] == (10.0, 100.0)
    assert rows["idle GPU, by the profiler"] == (7.5, 75.0)
    assert made["longest kernels"] == Table(("kernel", "ms per step"), (("gemm", 1.0),))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (GPU, ["idle 75% of the time", "tf32 launches fewer kernels than bf16", "training.compile=true"]),
        (replace(GPU, amp="off"), ["idle 75% of the time"]),
        (replace(GPU, busy=0.9, amp="off"), ["busy in fp32"]),
        (replace(GPU, busy=0.9, parts={"data": 0.006, "forward": 0.004}), ["gathering a batch takes 60%"]),
        (replace(GPU, busy=None, parts={"optimizer": 0.004}), ["the optimizer takes 40%"]),
        (replace(GPU, busy=0.8), ["nothing stands out"]),
    ],
)
def test_what_is_worth_changing_is_said(found: Profile, words: list[str]) -> None:
    said = advice(found)
    assert len(said) == 1
    for word in words:
        assert word in said[0]
    assert ("tf32" in said[0]) == any("tf32" in word or "fp32" in word for word in words)


def test_every_project_has_it() -> None:
    for spec in specs.installed().values():
        assert isinstance(spec, specs.Spec)
        assert spec.task("profile").needs == "config"
