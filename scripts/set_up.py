"""Makes .venv, or brings it up to date. Called by scripts/venv.sh; needs only Python's standard library.

    set_up.py --probe              exit 0: fit, and has torch; 3: fit, without torch; else unfit
    set_up.py run|test CHECKSUM    prepare .venv for ./run or ./test

COCKPIT_EXTRAS=a,b asks for the packages of these extras besides. Extras that are installed stay.

A file .venv/ready-NAME is written last and removed first, so whatever was cut short is made again. It holds four
lines: this directory, the checksum of what .venv was made from, where torch is, and the extras.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TORCH_FLOOR = (2, 6)
TORCH_WITHOUT_GPU = "torch==2.13.0"
TORCH_WITH_GPU = "torch>=2.6"  # the newest: GPU boxes run newer drivers than we could pin for
KERNELS = ("mamba-ssm==2.3.1", "causal-conv1d")
KERNEL_TOOLS = ("wheel", "ninja", "packaging", "setuptools")
"""What the kernels of Mamba-2 are, and what building them takes; the versions after 2.3.1 ask for a newer triton."""
EXTRAS: dict[str, list[str]] = {"run": [], "test": ["test"]}
FIT_WITHOUT_TORCH = 3
CAUSES = {  # what pip writes → what it means; its own closing lines often blame something else
    "No space left on device": "the disk is full: make room",
    "connection broken by": "pip cannot reach its package index: check the network",
}

INTERPRETER = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
"""Not an activated environment's, whose packages a new one would not see; and by its full name (python3.12), so that
.venv/bin/python is a dead link, which is noticed, and not another Python once `python3` is upgraded."""


class Torch(NamedTuple):
    version: str
    file: str
    sees_gpu: bool


class StepFailed(Exception):
    """A step of the set-up failed; `harmless` where it changed nothing in .venv."""

    def __init__(self, message: str, *, harmless: bool = False) -> None:
        super().__init__(message)
        self.harmless = harmless


def say(message: str) -> None:
    print(f"cockpit: {message}", file=sys.stderr, flush=True)


def torch_of(python: str | Path) -> Torch | None:
    """The torch that `python` imports, or None where it has none that is new enough. Importing is the only proof."""
    code = "import torch; print(torch.__version__, torch.__file__, torch.cuda.is_available(), sep='\\n')"
    found = subprocess.run([python, "-E", "-P", "-c", code], check=False, capture_output=True, text=True, cwd="/")
    lines = found.stdout.splitlines()[-3:]
    if found.returncode != 0 or len(lines) != 3:
        return None
    torch = Torch(lines[0], lines[1], lines[2] == "True")
    number = re.match(r"(\d+)\.(\d+)", torch.version)
    return torch if number and tuple(map(int, number.groups())) >= TORCH_FLOOR else None


def has_nvidia_gpu() -> bool:
    if Path("/dev/nvidiactl").exists():
        return True
    command = shutil.which("nvidia-smi")  # WSL has this and no /dev/nvidiactl; it fails where there is no GPU
    return command is not None and subprocess.call([command, "-L"], stdout=subprocess.DEVNULL) == 0


def torch_arguments() -> list[str]:
    """pip's arguments for torch on this machine."""
    if chosen := os.environ.get("COCKPIT_TORCH"):
        return shlex.split(chosen)
    return [TORCH_WITH_GPU if has_nvidia_gpu() else TORCH_WITHOUT_GPU]


def requirements(pyproject: Path, name: str, extras: Iterable[str] = ()) -> list[str]:
    """What pyproject.toml asks for `name` (run or test) with `extras`, without torch: so pip never trades the machine's
    torch for another because one of torch's own requirements has another version here. Raises `StepFailed`."""
    content = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = content["project"]
    optional = project["optional-dependencies"]
    found: list[str] = [*content["build-system"]["requires"], *project["dependencies"]]
    for extra in [*EXTRAS[name], *extras]:
        if extra not in optional:
            known = ", ".join(sorted(optional.keys() - {"test"}))
            raise StepFailed(f"COCKPIT_EXTRAS: there is no extra {extra!r}; expected some of {known}", harmless=True)
        found += optional[extra]
    return [one for one in found if re.split(r"[^\w.-]", one, maxsplit=1)[0] != "torch"]


class Environment:
    """The .venv in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".venv"
        self.python = self.path / "bin" / "python"
        self.log = self.path / "setup.log"

    def stamp(self, name: str) -> Path:
        return self.path / f"ready-{name}"

    def stamps(self) -> dict[Path, list[str]]:
        """The lines of every stamp that still holds for this place; empty where .venv must be made again."""
        if not os.access(self.python, os.X_OK):  # also a link to an interpreter that has gone
            return {}
        found = {path: path.read_text(encoding="utf-8").splitlines() for path in self.path.glob("ready-*")}
        return {
            path: lines
            for path, lines in found.items()
            if len(lines) in (3, 4) and lines[0] == str(self.root) and Path(lines[2]).exists()
        }

    def is_ready(self, name: str, checksum: str, asked: Iterable[str] = ()) -> bool:
        lines = self.stamps().get(self.stamp(name))
        return lines is not None and lines[1] == checksum and extras_in(lines) >= set(asked)

    def make(self) -> None:
        """An empty environment, on this interpreter; with its packages where torch is among them."""
        torch = torch_of(INTERPRETER)
        version = sys.version.split()[0]
        say(f"making .venv with Python {version}" + (f" and the machine's torch {torch.version}" if torch else ""))
        self.path.mkdir(exist_ok=True)
        for entry in self.path.iterdir():  # not rmtree on .venv itself: it may be a link to a faster disk
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        options = ["--system-site-packages"] if torch else []
        self._call([INTERPRETER, "-E", "-P", "-m", "venv", *options, str(self.path)], "making .venv failed")

    def install(self, name: str, extras: Iterable[str]) -> Torch:
        """Everything `name` and the extras need; returns the torch it will use."""
        wanted = requirements(self.root / "pyproject.toml", name, extras)
        pins = ("-c", str(self.root / "constraints.txt"))
        if torch_of(self.python) is None:
            arguments = torch_arguments()
            say(f"installing {shlex.join(arguments)}: a large download (COCKPIT_TORCH='…' chooses another build)")
            # Any other build brings what it needs in its own versions.
            self._pip(*arguments, *(pins if arguments == [TORCH_WITHOUT_GPU] else ()))
        say("installing cockpit and the packages it needs")
        self._pip(*wanted, *pins)
        self._pip("--no-deps", "--no-build-isolation", "-e", str(self.root))
        torch = torch_of(self.python)
        if torch is None:
            raise StepFailed("torch was installed and cannot be imported: try another build with COCKPIT_TORCH='…'")
        if has_nvidia_gpu() and not torch.sees_gpu:
            say(
                f"torch {torch.version} cannot use this machine's GPU, often because the driver is older than the"
                " build: remove .venv and choose a build with COCKPIT_TORCH='…'"
            )
        if torch.sees_gpu and shutil.which("nvcc"):
            self._install_kernels(torch)
        return torch

    def _install_kernels(self, torch: Torch) -> None:
        """mamba-ssm where it can be built for this torch, which it never changes; nothing fails without it."""
        say("installing mamba-ssm, which may build for some minutes; without it Mamba-2 runs on a scan of its own")
        pin = self.path / "torch.txt"
        pin.write_text(f"torch=={torch.version}\n", encoding="utf-8")
        for arguments in (KERNEL_TOOLS, ("--no-build-isolation", *KERNELS)):
            failed = self._run([*self._installing(), *arguments, "-c", str(pin)])
            if failed is not None:
                say(f"mamba-ssm was not installed, and is not needed (pip's log: {self.log})")
                return

    def _pip(self, *arguments: str) -> None:
        self._call([*self._installing(), *arguments], "pip failed")

    def _installing(self) -> list[str]:
        return [str(self.python), "-E", "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]

    def _call(self, command: list[str], failure: str) -> None:
        text = self._run(command)
        if text is not None:  # pip gathers everything first and says so when it begins to write
            raise StepFailed(explain(text, failure, self.log), harmless="Installing collected packages" not in text)

    def _run(self, command: list[str]) -> str | None:
        """What the command printed where it failed, else None."""
        with self.log.open("a+b") as log:
            begin = log.seek(0, os.SEEK_END)
            # The lock's descriptor goes along: what a killed set-up leaves behind still keeps the next one waiting.
            status = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False)
            log.seek(begin)
            return None if status == 0 else log.read().decode(errors="replace")


def explain(output: str, failure: str, log: Path) -> str:
    """Prints the telling lines of a failed command's output, and says in one sentence what to do."""
    lines = output.splitlines()
    for sign, meaning in CAUSES.items():
        if telling := [line for line in lines if sign in line]:
            print(telling[-1], file=sys.stderr)
            return f"{meaning}, then start this again (pip's log: {log})"
    print(*lines[-12:], sep="\n", file=sys.stderr)
    return f"{failure}: mend what the lines above say, then start this again (pip's log: {log})"


def extras_in(lines: list[str]) -> set[str]:
    """The extras of a stamp, which has no line for them where it is older than they are."""
    return words(lines[3]) if len(lines) == 4 else set()


def words(listed: str) -> set[str]:
    return set(listed.replace(",", " ").split())


def write(stamp: Path, lines: list[str]) -> None:
    stamp.write_text("\n".join(lines) + "\n", encoding="utf-8")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One set-up at a time in this directory."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(descriptor, True)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is at work in this directory; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def set_up(environment: Environment, name: str, checksum: str, asked: Iterable[str] = ()) -> None:
    """Prepares .venv for `name`, with the extras that are asked for beside those it has. Raises `StepFailed`."""
    if environment.is_ready(name, checksum, asked):  # by the one we waited for
        return
    before = environment.stamps()
    extras = sorted(set(asked).union(*map(extras_in, before.values())))
    if not before:
        environment.make()
    for path in before:
        path.unlink()
    try:
        torch = environment.install(name, extras)
    except StepFailed as failure:
        if failure.harmless:
            for path, lines in before.items():
                write(path, lines)
        raise
    for ready in {name, "run"}:
        write(environment.stamp(ready), [str(environment.root), checksum, torch.file, ",".join(extras)])


def main(arguments: list[str]) -> int:
    if arguments == ["--probe"]:
        fit = all(map(importlib.util.find_spec, ("venv", "ensurepip")))
        return 1 if not fit else 0 if torch_of(INTERPRETER) else FIT_WITHOUT_TORCH
    name, checksum = arguments
    try:
        with locked(ROOT / ".venv.lock"):
            set_up(Environment(ROOT), name, checksum, words(os.environ.get("COCKPIT_EXTRAS", "")))
    except (StepFailed, OSError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("set-up interrupted; the next start makes it again")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
