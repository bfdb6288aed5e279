"""scripts/gpu_check.sh on a machine that has Python, torch, numpy and the wheels of the list, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts import unpack_wheels
from scripts.supply import pins

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "gpu_check.sh"
OTHERS = """
import os, sys, pytest
from cockpit.cli import main
from tests.gpu import facts
tests, sys.argv[1:] = sys.argv[1:], ["--only", ": made"]
assert facts.main() == 0
for words in (["ls", "--json"], ["queue"], ["status", "--line"]):
    assert main(words) == 0
os.chdir(os.path.dirname(facts.__file__))
sys.exit(pytest.main(["-c", "pytest.ini", "--collect-only", "-q", *tests]))
"""


def with_what_it_needs(*names: str) -> set[str]:
    todo, seen = [*names], set[str]()
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            needed = map(Requirement, metadata.requires(name) or [])
            todo += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return seen


def files(name: str) -> list[metadata.PackagePath]:
    """Of an installed package."""
    kept = metadata.files(name) or []
    return [file for file in kept if ".." not in file.parts and "__pycache__" not in file.parts]


class Machine:
    """A Python that has torch and numpy alone, and a folder of wheels made of what is installed here."""

    def __init__(self, folder: Path) -> None:
        self.stock, self.wheels, self.home = folder / "stock", folder / "the wheels", folder / "home"
        self.python = folder / "python"
        for made in (self.stock, self.wheels, self.home):
            made.mkdir()
        for name in with_what_it_needs("torch", "numpy"):
            for top in {file.parts[0] for file in files(name)}:
                (self.stock / top).symlink_to(str(metadata.distribution(name).locate_file(top)))
        for name in unpack_wheels.listed():
            with zipfile.ZipFile(self.wheel(name), "w") as wheel:
                for file in files(name):
                    wheel.write(str(file.locate()), str(file))
        self.python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{self.stock}" exec "{sys.executable}" -S "$@"\n')
        self.python.chmod(0o755)

    def wheel(self, name: str, tags: str = "py3-none-any") -> Path:
        return self.wheels / f"{name.replace('-', '_')}-{pins()[name.lower()]}-{tags}.whl"

    def run(self, *command: str | Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
        own: dict[str, str | Path] = {"PATH": os.environ["PATH"], "HOME": self.home, "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=self.home, env=own | {"PYTHON": self.python, "WHEELS": self.wheels} | variables,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def test_the_wheels_are_all_that_facts_commands_and_tests_import(machine: Machine, tmp_path: Path) -> None:
    unpack = (machine.python, "-P", "-m", "scripts.unpack_wheels", tmp_path, machine.wheels)
    unpacked = machine.run(*unpack, PYTHONPATH=ROOT)
    assert (unpacked.returncode, unpacked.stderr) == (0, "")
    named = set(re.findall(r"test_\w+\.py", SCRIPT.read_text()))
    assert named == {path.name for path in (ROOT / "tests/gpu").glob("test_*.py")} - {"test_facts.py"}
    others = (machine.python, "-P", "-c", OTHERS, *named)
    result = machine.run(*others, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert all(name in result.stdout for name in named)


def test_what_is_missing_is_a_sentence(machine: Machine, tmp_path: Path) -> None:
    def said(**variables: str | Path) -> str:
        result = machine.run("sh", SCRIPT, tmp_path / "out", **variables)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
        return result.stderr

    assert "no python9 here: set PYTHON" in said(PYTHON="python9")
    (tmp_path / "old").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "old").chmod(0o755)
    assert "old is not Python 3.11 or newer" in said(PYTHON=tmp_path / "old")
    (tmp_path / "bare").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    (tmp_path / "bare").chmod(0o755)
    assert "has no torch: install torch and numpy there" in said(PYTHON=tmp_path / "bare")
    assert "no wheel of msgspec, pydantic, pydantic-core, " in said(WHEELS=tmp_path / "nothing")

    right, wrong = machine.wheel("psutil"), machine.wheel("psutil", "cp310-cp310-manylinux2014_x86_64")
    right.rename(wrong)
    assert re.search("no wheel of psutil for Python .* on .*: run `python3 -m pip download .*` in a checkout", said())
    wrong.rename(right)
    whole = right.read_bytes()
    right.write_bytes(whole[:1000])
    assert f"{right} is damaged" in said()
    right.write_bytes(whole)


@pytest.mark.slow
def test_every_fact_is_reported_and_every_test_is_there(machine: Machine, tmp_path: Path) -> None:
    """Nothing is left in the user's folders."""
    result = machine.run("sh", SCRIPT, tmp_path / "out")
    assert result.returncode == 0, result.stdout + result.stderr
    facts = [json.loads(line) for line in (tmp_path / "out" / "facts.jsonl").read_text().splitlines()]
    assert len(facts) > 40
    assert {fact.get("skipped", "needs a GPU") for fact in facts} == {"needs a GPU"}
    assert all(("value" in fact) != ("skipped" in fact) for fact in facts)
    assert (tmp_path / "out" / "junit.xml").exists()
    assert list(machine.home.iterdir()) == []
