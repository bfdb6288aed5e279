"""Makes FOLDER a place on PYTHONPATH from which this checkout runs uninstalled: `unpack_wheels.py FOLDER WHEELS`.

Called by scripts/gpu_check.sh. Unpacks what scripts/gpu_wheels.txt lists, in the versions of constraints.txt, from the
folder WHEELS, and writes the entry points of the projects. Needs only Python's standard library. Exit code 1, with a
sentence: torch, numpy or a listed package is missing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
import tomllib
import zipfile
from pathlib import Path

from scripts.set_up import ROOT
from scripts.supply import normal, pins

LIST = ROOT / "scripts" / "gpu_wheels.txt"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
MACHINE = platform.machine()
DOWNLOAD = (
    f"python3 -m pip download --no-deps --only-binary=:all: --python-version {PYTHON} "
    f"--platform manylinux2014_{MACHINE} -d wheels -c constraints.txt -r scripts/gpu_wheels.txt"
)


def listed() -> list[str]:
    """The names in scripts/gpu_wheels.txt."""
    return [line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def fits(wheel: Path) -> bool:
    """Whether a wheel is for this Python and this machine, by the tags in its name."""
    abi, system = wheel.stem.split("-")[-2:]
    return abi in ("none", "abi3", f"cp{PYTHON.replace('.', '')}{sys.abiflags}") and (
        system == "any" or ("linux" in system and system.endswith(MACHINE))
    )


def unpack(folder: Path, wheels: Path) -> None:
    """Raises zipfile.BadZipFile, with the wheel's name, where one was not copied whole."""
    versions = pins()
    wanted = {(normal(name), versions[normal(name)]) for name in listed()}
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.stem.split("-")[:2]
        if (normal(name), version) in wanted and fits(wheel):
            try:
                zipfile.ZipFile(wheel).extractall(folder)
            except zipfile.BadZipFile as error:
                raise zipfile.BadZipFile(f"{wheel} is damaged ({error}): copy it again") from error


def missing(folder: Path) -> list[str]:
    """Listed packages that are neither in `folder` nor installed."""
    path = [str(folder), *sys.path]
    return [name for name in listed() if not list(importlib.metadata.distributions(name=name, path=path))]


def write_entry_points(folder: Path) -> None:
    """The projects, as an installation of the checkout would name them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"cockpit-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: cockpit\nVersion: {project['version']}\n")
    points = "\n".join(f"{name} = {place}" for name, place in project["entry-points"]["cockpit.projects"].items())
    (info / "entry_points.txt").write_text(f"[cockpit.projects]\n{points}\n")


def main(folder: Path, wheels: Path) -> str | None:
    """The sentence that says what is missing, if anything is."""
    for name in ("torch", "numpy"):
        if importlib.util.find_spec(name) is None:
            return f"{sys.executable} has no {name}: install torch and numpy there, or set PYTHON to a Python with both"
    try:
        unpack(folder, wheels)
    except zipfile.BadZipFile as error:
        return str(error)
    if absent := missing(folder):
        return (
            f"{wheels} has no wheel of {', '.join(absent)} for Python {PYTHON} on {MACHINE}: run `{DOWNLOAD}` in a "
            "checkout on a machine with network, and copy its folder wheels here"
        )
    write_entry_points(folder)
    return None


if __name__ == "__main__":
    if sentence := main(*map(Path, sys.argv[1:])):
        sys.exit(f"gpu_check: {sentence}")
