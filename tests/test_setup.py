"""./run and ./test: what makes .venv, when, and what a person is told. The interpreters here are stand-ins; that a real
one ends in a working .venv is shown by every CI run, which starts from a clean clone."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import set_up

ROOT = Path(__file__).resolve().parents[1]

PYTHON = """#!/bin/sh
# Called as: python -E -P set_up.py --probe | NAME CHECKSUM
echo "$0 $4" >> "{calls}"
[ "$4" = --probe ] && exit {probe}
root=$(dirname "$(dirname "$3")")
mkdir -p "$root/.venv/bin"
printf '#!/bin/sh\\necho "$PWD: $*"\\n' > "$root/.venv/bin/cockpit"
chmod +x "$root/.venv/bin/cockpit"
ln -sf "{sh}" "$root/.venv/bin/python"
echo torch > "$root/torch.py"
printf '%s\\n' "$root" "$5" "$root/torch.py" "$COCKPIT_EXTRAS" > "$root/.venv/ready-$4"
exit {status}
"""


class Clone:
    """A clone without .venv, on a machine that has only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.calls_file = folder / "calls"
        for made in (self.root / "scripts", self.home, self.bin):
            made.mkdir(parents=True)
        for name in ("run", "test", "pyproject.toml", "constraints.txt", "scripts/venv.sh", "scripts/set_up.py"):
            shutil.copy(ROOT / name, self.root / name)
        for tool in ("sh", "cat", "chmod", "cksum", "dirname", "ln", "mkdir", "readlink"):
            (self.bin / tool).symlink_to(shutil.which(tool) or pytest.skip(f"this machine has no {tool}"))

    def add_python(self, name: str, *, torch: bool = False, status: int = 0) -> None:
        path = self.bin / name
        probe = 0 if torch else set_up.FIT_WITHOUT_TORCH
        path.write_text(PYTHON.format(calls=self.calls_file, probe=probe, sh=shutil.which("sh"), status=status))
        path.chmod(0o755)

    def run(self, *arguments: str, extras: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.home), **({"COCKPIT_EXTRAS": extras} if extras else {})}
        command = [str(self.root / "run"), *arguments]
        return subprocess.run(command, cwd=self.home, env=environment, capture_output=True, text=True, check=False)

    def set_ups(self) -> list[str]:
        """The interpreters that set .venv up, one for each time, since the last call."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return [Path(name).name for name, what in (line.split() for line in lines) if what != "--probe"]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize("script", ["run", "test", ".ci/run", "scripts/venv.sh"])
def test_scripts_are_valid_sh(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / script], check=True)
    assert script == "scripts/venv.sh" or (ROOT / script).stat().st_mode & stat.S_IXUSR


def test_the_first_start_sets_up_and_later_ones_only_start(clone: Clone) -> None:
    clone.add_python("python3")
    first = clone.run("demo", "--set", "a b=c")
    assert (first.returncode, first.stdout) == (0, f"{clone.home}: demo --set a b=c\n")
    assert clone.set_ups() == ["python3"]

    assert clone.run("ls").stdout == f"{clone.home}: ls\n"
    assert not clone.calls_file.exists(), "a later start looks for no interpreter"


def _move(clone: Clone) -> None:
    clone.root = clone.root.rename(clone.root.with_name("moved"))


def _change(clone: Clone) -> None:
    with (clone.root / "constraints.txt").open("a") as constraints:
        constraints.write("# newer\n")


SPOILERS: dict[str, Callable[[Clone], object]] = {
    "new requirements": _change,
    "moved": _move,
    "torch gone": lambda clone: (clone.root / "torch.py").unlink(),
    "interpreter gone": lambda clone: (clone.root / ".venv/bin/python").unlink(),
    "stamp cut short": lambda clone: os.truncate(clone.root / ".venv/ready-run", 20),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS.keys())
def test_an_environment_that_no_longer_fits_is_set_up_again(clone: Clone, spoil: Callable[[Clone], object]) -> None:
    clone.add_python("python3")
    clone.run()
    clone.set_ups()
    spoil(clone)
    assert clone.run().returncode == 0
    assert clone.set_ups() == ["python3"]


def test_a_start_that_asks_for_other_extras_sets_up_again(clone: Clone) -> None:
    clone.add_python("python3")
    for extras, set_ups in (("", 1), ("wandb", 1), ("wandb", 0), ("", 0), ("sim,wandb", 1), ("wandb, sim", 0)):
        clone.run("ls", extras=extras)
        assert len(clone.set_ups()) == set_ups, extras
    clone.run("ls", extras="sim,*")
    assert clone.set_ups() == ["python3"]


def test_an_interpreter_with_torch_is_preferred(clone: Clone) -> None:
    clone.add_python("python3")
    clone.add_python("python3.12", torch=True)
    clone.run()
    assert clone.set_ups() == ["python3.12"]


def test_without_an_interpreter_one_sentence_says_what_to_install(clone: Clone) -> None:
    result = clone.run()
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("cockpit: found no Python 3.11 or newer")
    assert result.stderr.count("\n") == 1


def test_a_failed_set_up_starts_nothing(clone: Clone) -> None:
    clone.add_python("python3", status=1)
    result = clone.run()
    assert (result.returncode, result.stdout) == (1, "")


class StubEnvironment(set_up.Environment):
    """An environment whose steps succeed, or fail as told, without pip."""

    failure: BaseException | None = None
    installed: list[str]

    def make(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.python.parent.mkdir(parents=True)
        shutil.copy(shutil.which("sh") or "", self.python)

    def install(self, name: str, extras: Iterable[str]) -> set_up.Torch:
        self.installed = [name, *extras]
        if self.failure:
            raise self.failure
        return set_up.Torch("2.9.0", str(self.python), sees_gpu=False)


def test_the_environment_of_the_tests_serves_the_program_too(tmp_path: Path) -> None:
    environment = StubEnvironment(tmp_path)
    set_up.set_up(environment, "test", "sum")
    assert environment.is_ready("test", "sum")
    assert environment.is_ready("run", "sum")
    assert not environment.is_ready("run", "another sum")


def test_extras_that_are_not_there_are_installed_beside_those_that_are(tmp_path: Path) -> None:
    environment = StubEnvironment(tmp_path)
    set_up.set_up(environment, "run", "sum", {"wandb"})
    assert environment.is_ready("run", "sum", {"wandb"})
    assert environment.is_ready("run", "sum")
    assert not environment.is_ready("run", "sum", {"wandb", "tensorboard"})
    set_up.set_up(environment, "run", "sum", {"tensorboard"})
    assert environment.installed == ["run", "tensorboard", "wandb"]
    set_up.set_up(environment, "run", "newer")
    assert environment.installed == ["run", "tensorboard", "wandb"], "an update keeps what somebody asked for"


def test_an_extra_that_there_is_not_is_one_sentence() -> None:
    assert "wandb>=0.19" in set_up.requirements(ROOT / "pyproject.toml", "run", ["wandb"])
    with pytest.raises(set_up.StepFailed, match=r"no extra 'wand'; expected some of .*tensorboard.*wandb") as caught:
        set_up.requirements(ROOT / "pyproject.toml", "run", ["wand"])
    assert caught.value.harmless
    assert "test" not in str(caught.value)


def test_an_update_that_changed_nothing_keeps_the_environment(tmp_path: Path) -> None:
    environment = StubEnvironment(tmp_path)
    set_up.set_up(environment, "run", "old")
    environment.failure = set_up.StepFailed("no network", harmless=True)
    with pytest.raises(set_up.StepFailed):
        set_up.set_up(environment, "run", "new")
    assert environment.is_ready("run", "old")


@pytest.mark.parametrize("failure", [set_up.StepFailed("disk full"), KeyboardInterrupt()])
def test_an_update_cut_short_is_made_again(tmp_path: Path, failure: BaseException) -> None:
    environment = StubEnvironment(tmp_path)
    set_up.set_up(environment, "run", "old")
    (environment.path / "half-written").touch()
    environment.failure = failure
    with pytest.raises(type(failure)):
        set_up.set_up(environment, "run", "new")

    environment.failure = None
    set_up.set_up(environment, "run", "new")
    assert environment.is_ready("run", "new")
    assert not (environment.path / "half-written").exists()


def test_one_set_up_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / ".venv.lock"
    with lock.open("w") as other:
        with set_up.locked(lock), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(("version", "accepted"), [("2.5.1+cu124", False), ("2.6.0", True), ("2.13.0a0+nv", True)])
def test_the_machines_torch_must_be_new_enough(tmp_path: Path, version: str, accepted: bool) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nprintf '%s\\n' noise {version} /torch/__init__.py True\n")
    python.chmod(0o755)
    assert set_up.torch_of(python) == (set_up.Torch(version, "/torch/__init__.py", True) if accepted else None)


def test_which_torch_a_machine_without_one_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COCKPIT_TORCH", raising=False)
    monkeypatch.setattr(set_up, "has_nvidia_gpu", lambda: False)
    assert set_up.torch_arguments() == ["torch==2.13.0"]
    monkeypatch.setattr(set_up, "has_nvidia_gpu", lambda: True)
    assert set_up.torch_arguments() == ["torch>=2.6"]
    monkeypatch.setenv("COCKPIT_TORCH", "torch==2.8.0 --find-links '/my wheels'")
    assert set_up.torch_arguments() == ["torch==2.8.0", "--find-links", "/my wheels"]


def test_pip_is_never_asked_for_torch_among_the_rest(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(
        """
        [build-system]
        requires = ["setuptools>=77"]
        [project]
        dependencies = ["torch>=2.6", "torch-like==1", "numpy"]
        [project.optional-dependencies]
        test = ["pytest"]
        """
    )
    assert set_up.requirements(pyproject, "run") == ["setuptools>=77", "torch-like==1", "numpy"]
    assert set_up.requirements(pyproject, "test") == ["setuptools>=77", "torch-like==1", "numpy", "pytest"]


class Installing(set_up.Environment):
    """Writes down what pip is asked for, and fails where `bad` is part of it."""

    bad = "nothing"

    def _run(self, command: list[str]) -> str | None:
        self.asked = [*getattr(self, "asked", []), command[command.index("install") + 1 :]]
        return "no wheel" if any(self.bad in part for part in command) else None


@pytest.mark.parametrize(
    ("sees_gpu", "nvcc", "bad", "tried", "said"),
    [(True, "/bin/nvcc", "nothing", True, False), (True, "/bin/nvcc", "mamba-ssm==", True, True),
     (True, "/bin/nvcc", "ninja", True, True), (True, None, "nothing", False, False),
     (False, "/bin/nvcc", "nothing", False, False)],
)  # fmt: skip
def test_the_kernels_of_mamba_come_where_they_can_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    sees_gpu: bool, nvcc: str | None, bad: str, tried: bool, said: bool,
) -> None:  # fmt: skip
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = Installing(tmp_path)
    environment.path.mkdir()
    environment.bad = bad
    torch = set_up.Torch("2.8.0+cu128", "/torch/__init__.py", sees_gpu)
    monkeypatch.setattr(set_up, "torch_of", lambda python: torch)
    monkeypatch.setattr(set_up, "has_nvidia_gpu", lambda: sees_gpu)
    monkeypatch.setattr(shutil, "which", lambda name: nvcc)
    assert environment.install("run", ()) is torch
    kernels = [asked for asked in environment.asked if "mamba-ssm==2.3.1" in asked]
    assert len(kernels) == (tried and bad != "ninja")
    for asked in kernels:
        assert asked[:3] == ["--no-build-isolation", "mamba-ssm==2.3.1", "causal-conv1d"]
        assert Path(asked[-1]).read_text() == "torch==2.8.0+cu128\n", "pip may not trade the torch that is there"
    assert ("was not installed" in capsys.readouterr().err) == said


def test_an_unreachable_index_is_named_although_pip_blames_a_conflict(capsys: pytest.CaptureFixture[str]) -> None:
    output = "WARNING: Retrying after connection broken by 'X'\nINFO: looking\nERROR: ResolutionImpossible\n"
    assert set_up.explain(output, "pip failed", Path("log")).startswith("pip cannot reach its package index")
    assert capsys.readouterr().err == "WARNING: Retrying after connection broken by 'X'\n"


def pinned() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in pins}


def needed_by(*roots: str) -> Iterator[Requirement]:
    """Every requirement of `roots` and of what they need in turn. torch, and what only it needs, is left out: that is
    the machine's business."""
    todo, seen = [Requirement(root) for root in roots], set()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        if name == "torch" or (name, *wanted.extras) in seen:
            continue
        seen.add((name, *wanted.extras))
        yield wanted
        for needed in map(Requirement, metadata.requires(name) or []):
            extras = wanted.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(needed)


def test_every_package_in_use_has_its_pinned_version() -> None:
    pins = pinned()
    assert "torch" not in pins
    assert all({one.operator for one in pin.specifier} == {"=="} for pin in pins.values())
    needed = [one for one in needed_by("cockpit[test]", "setuptools") if one.name != "cockpit"]
    assert {"textual", "pytest", "MarkupSafe"} <= {one.name for one in needed}
    for one in needed:
        version = metadata.version(one.name)
        pin = pins.get(canonicalize_name(one.name))
        assert pin is not None, f"{one.name} {version} is not pinned in constraints.txt"
        assert pin.specifier.contains(version), f"{one.name} {version} is installed, {pin} is pinned"
        assert one.specifier.contains(version, prereleases=True)
