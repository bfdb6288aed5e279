"""`cockpit doctor`: made limits, mounts, terminals and drivers, and what is said of each."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.doctor.container import container_findings, read_container
from cockpit.core.doctor.disk import DiskFacts, disk_findings, file_system, read_disk
from cockpit.core.doctor.finding import Finding
from cockpit.core.doctor.gpu import GpuFacts, gpu_findings
from cockpit.core.doctor.terminal import read_terminal, terminal_findings
from engines.torch_facts import runs_on

CARD = {"name": "NVIDIA H100", "capability": "9.0", "supported": True}
TORCH = {
    "version": "2.8.0", "cuda": "12.8", "available": True, "error": "", "cards": [CARD],
    "mamba": {"version": "2.3.1", "error": ""},
}  # fmt: skip


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    found = {finding.name: finding for finding in findings}
    assert all(finding.fix for finding in found.values() if finding.level != "ok")
    return found


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.behaviour("doctor-limits")
def test_limits_of_a_container_in_both_versions(tmp_path: Path) -> None:
    second = written(
        tmp_path / "v2",
        {
            "memory.max": str(8 << 30), "memory.current": str(7 << 30), "memory.stat": "inactive_file 1048576\n",
            "cpu.max": "50000 100000\n", "cpu.stat": "usage_usec 1\n", "pids.max": "200\n", "pids.current": "90\n",
        },
    )  # fmt: skip
    (own_second := tmp_path / "own2").write_text("0::/\n")
    first = written(
        tmp_path / "v1",
        {
            "memory/memory.limit_in_bytes": str(8 << 30), "memory/memory.usage_in_bytes": str(7 << 30),
            "memory/memory.stat": "total_inactive_file 1048576\n", "cpu/cpu.cfs_quota_us": "50000\n",
            "cpu/cpu.cfs_period_us": "100000\n", "pids/pids.max": "200\n", "pids/pids.current": "90\n",
        },
    )  # fmt: skip
    (own_first := tmp_path / "own1").write_text("3:memory:/\n2:cpu:/\n1:pids:/\n")
    facts = read_container(second, own_second, shared=tmp_path)
    assert facts == read_container(first, own_first, shared=tmp_path)
    assert (facts.cores, facts.processes) == (0.5, (90, 200))
    assert facts.memory_total - facts.memory_used == (1 << 30) + 1048576
    found = by_name(container_findings(dataclasses.replace(facts, shared_memory=64 << 20, open_files=1024)))
    assert {name for name, one in found.items() if one.level == "warn"} >= {
        "memory", "cores", "processes", "/dev/shm", "open files"
    }  # fmt: skip
    assert found["cores"].fix == "export OMP_NUM_THREADS=1"
    assert found["processes"].text.startswith("90 of at most 200 processes and threads")


def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    facts = read_container(tmp_path, tmp_path / "none", shared=tmp_path / "none")
    assert (facts.processes, facts.cores) == (None, len(os.sched_getaffinity(0)))
    found = by_name(container_findings(facts))
    assert found["processes"].level == "ok"
    assert found["/dev/shm"].text.startswith("There is no /dev/shm")


@pytest.mark.behaviour("doctor-disk")
def test_the_volume_of_the_output(tmp_path: Path) -> None:
    facts = read_disk(tmp_path / "new" / "runs", environment={})
    assert (facts.place, facts.error, facts.locks, facts.lock_error) == (tmp_path, "", True, "")
    assert list(tmp_path.iterdir()) == []
    found = by_name(disk_findings(dataclasses.replace(facts, free=5 << 20, skew=-7.0, locks=False)))
    assert (found["disk"].level, found["disk"].fix) == ("fail", "cockpit prune")
    assert found["clock"].text.endswith("is 7 s behind this machine's; ages of files are wrong.")
    assert "process id and its start time are used instead" in found["locks"].text
    full = by_name(disk_findings(dataclasses.replace(facts, error="Read-only file system")))
    assert list(full) == ["disk"]
    assert full["disk"].level == "fail"


def test_a_pods_own_disk_is_told_from_its_volume(tmp_path: Path) -> None:
    (mounts := tmp_path / "mounts").write_text("overlay / overlay rw 0 0\nmfs:9421 /work\\040space fuse rw 0 0\n")
    kinds = {place: file_system(Path(place), mounts) for place in ("/root/runs", "/work space/runs")}
    assert kinds == {"/root/runs": "overlay", "/work space/runs": "fuse"}
    facts = DiskFacts(Path("/root/runs"), Path("/root"), "overlay", 1 << 40, 1 << 41, "", True, "", 0.0, on_pod=True)
    found = by_name(disk_findings(facts))
    assert found["volume"].fix == "export COCKPIT_RUNS=/workspace/runs"
    assert by_name(disk_findings(dataclasses.replace(facts, kind="fuse")))["volume"].level == "ok"


@pytest.mark.parametrize(
    ("environment", "warned"),
    [
        ({"TERM": "xterm-256color", "LANG": "de_DE.UTF-8"}, set()),
        ({"TERM": "xterm-256color", "LC_ALL": "C"}, {"locale"}),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux,1,0"}, {"terminal"}),
        ({"TERM": "dumb"}, {"terminal", "colours"}),
        ({"TERM": "xterm"}, {"colours"}),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, set()),
        ({}, {"terminal", "colours"}),
    ],
)
def test_the_terminal(environment: dict[str, str], warned: set[str]) -> None:
    found = by_name(terminal_findings(read_terminal(environment, "utf-8")))
    assert {name for name, one in found.items() if one.level == "warn"} == warned
    assert found["session"].text == "This is not an SSH session." or "TMUX" in environment


def test_an_ssh_session_says_what_keeps_it() -> None:
    bare = by_name(terminal_findings(read_terminal({"TERM": "xterm-256color", "SSH_CONNECTION": "1 2 3 4"}, "utf-8")))
    assert bare["session"].fix == "tmux new -A -s cockpit"
    kept = read_terminal({"TERM": "screen-256color", "SSH_CONNECTION": "1 2 3 4", "STY": "1.pts"}, "utf-8")
    assert by_name(terminal_findings(kept))["session"].text.startswith("This shell is inside screen")


@pytest.mark.behaviour("doctor-gpu")
@pytest.mark.parametrize(
    ("torch", "level", "words", "fix"),
    [
        ({}, "ok", "reaches 1 of 1 cards", ""),
        ({"cuda": "13.0"}, "fail", "the driver runs CUDA up to 12.4", "torch==2.9.1"),
        ({"cuda": None, "available": False}, "fail", "is a build for the CPU; the GPU is not used", "torch==2.9.1"),
        ({"available": False, "error": "no CUDA-capable device"}, "fail", "no CUDA-capable device", "nvidia-smi"),
        ({"cards": [{**CARD, "supported": False}]}, "fail", "no code for NVIDIA H100", "torch==2.9.1"),
    ],
)
def test_torch_against_the_driver(torch: dict[str, Any], level: str, words: str, fix: str) -> None:
    facts = GpuFacts("", "550.54", (12, 4), ["NVIDIA H100"], {**TORCH, **torch})
    found = by_name(gpu_findings(facts))["torch"]
    assert found.level == level
    assert words in found.text
    assert fix in found.fix


def test_mamba_and_a_torch_that_is_broken() -> None:
    def mamba(**facts: str) -> Finding:
        torch = {**TORCH, "mamba": {"version": "", "error": "", **facts}}
        return by_name(gpu_findings(GpuFacts("", "550", (12, 4), ["H100"], torch)))["mamba-ssm"]

    assert (mamba().level, mamba(version="2.3.1").level) == ("warn", "ok")
    assert "undefined symbol" in mamba(version="2.3.1", error="undefined symbol: _ZN").text
    broken = by_name(gpu_findings(GpuFacts("no NVIDIA driver", torch_error="ImportError: libcudart")))
    assert broken["torch"].text == "torch does not import: ImportError: libcudart."
    assert broken["torch"].fix == "rm -rf .venv && ./run --version"
    assert "mamba-ssm" not in broken
    alone = by_name(gpu_findings(GpuFacts("no NVIDIA driver", torch={**TORCH, "cuda": None, "available": False})))
    assert alone["torch"].level == "ok"


def test_code_for_a_card_runs_on_later_ones_of_its_kind() -> None:
    runs = {code for code in ("sm_80", "sm_86", "sm_90a", "compute_80", "compute_90", "sm_x") if runs_on(code, (8, 9))}
    assert runs == {"sm_80", "sm_86", "compute_80"}
