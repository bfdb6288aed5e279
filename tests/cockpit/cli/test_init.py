"""A first config, written for each project; and what the wheel brings along."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from engines.contract.config import check_config, load_config
from engines.contract.spec import Spec, installed
from tests.cockpit.cli.conftest import Cockpit

ROOT = Path(__file__).resolve().parents[3]
PROJECTS = sorted(name for name, spec in installed().items() if isinstance(spec, Spec))


@pytest.mark.behaviour("wheel-has-configs")
@pytest.mark.parametrize("project", PROJECTS)
def test_it_loads_as_written_and_with_every_default_uncommented(cockpit: Cockpit, tmp_path: Path, project: str) -> None:
    assert cockpit("init", project).returncode == 0
    file = tmp_path / f"{project}.yaml"
    first = load_config(file).settings
    assert str(first.data.path) == f"data/{project}"
    version = {"version": 2} if project == "controls" else {}
    plain = check_config({"project": project, **version, "data": {"path": f"data/{project}"}}, "x", {}, []).settings
    assert first == plain

    lines = [re.sub(r"^(\s*)# (?=\s*[a-z]\w*:( |$))", r"\1", line) for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    assert len([line for line in lines if line.strip() and not line.lstrip().startswith("#")]) > 20
    assert load_config(file).settings == plain


def test_a_file_that_is_there_stays_and_no_project_is_asked_for(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    refused = cockpit("init", "controls", "mine.yaml")
    assert (refused.returncode, (tmp_path / "mine.yaml").read_text()) == (2, "mine")
    assert "already exists" in refused.stderr
    assert "name a project: agent, controls" in cockpit("init").stderr


def build_wheel(folder: Path) -> Path:
    """The wheel, built from a copy of what it is made of: builds leave files behind that the next one would ship."""
    source = folder / "source"
    for name in ("cockpit", "engines", "projects", "configs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "."], cwd=source, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.behaviour("wheel-has-configs")
@pytest.mark.slow
def test_the_wheel_alone_has_configs_and_starts(tmp_path: Path) -> None:
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(site)}
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=elsewhere, env=environment, check=True, capture_output=True, text=True
        ).stdout

    wheel = build_wheel(tmp_path)
    shipped = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "share/cockpit/configs/" in name}
    assert shipped == {file.name for file in (ROOT / "configs").glob("*.yaml")}
    python(
        "pip", "install", "--quiet", "--no-deps", "--ignore-installed", "--prefix", str(tmp_path / "venv"), str(wheel)
    )
    code = "from engines.contract.shipped import SHIPPED\nfrom cockpit.core.doctor.gpu import REPAIRED\n"
    (elsewhere / "where.py").write_text(f"{code}print(SHIPPED, REPAIRED, sep='\\n')")
    place, repaired = python("where").splitlines()
    assert repaired == f"{shlex.quote(sys.executable)} -m pip install --force-reinstall 'torch'"
    where = Path(place)
    assert where.is_relative_to(tmp_path / "venv")
    assert {file.name for file in where.glob("*.yaml")} == shipped
    python("cockpit", "init", "controls")
    assert (elsewhere / "controls.yaml").is_file()


SMALL = "--set training.epochs=2 --set training.steps_per_epoch=20 --set training.warmup_epochs=0".split()
COMPLETE = """
. <(cockpit completion bash)
COMP_LINE="cockpit tra" COMP_POINT=11 COMP_TYPE=9
_python_argcomplete cockpit
echo "${COMPREPLY[@]}"
"""


@pytest.mark.behaviour("wheel-has-configs")
@pytest.mark.slow
def test_pipx_installs_a_working_program_for_an_empty_home(tmp_path: Path) -> None:
    """Of the dependencies, gigabytes, those of this environment are used, as of a machine's own torch.

    The demo is the shipped one, cut to two short epochs: whole it takes minutes, on a busy machine more than ten.
    """
    home, tools = tmp_path / "home", tmp_path / "tools"
    bare = {
        "HOME": str(home), "PATH": f"{home / 'bin'}:/usr/bin:/bin", "PIPX_HOME": str(home / "pipx"),
        "PIPX_BIN_DIR": str(home / "bin"), "TERM": "xterm", "OMP_NUM_THREADS": "1",
    }  # fmt: skip

    def run(*command: str, folder: Path = tmp_path) -> str:
        done = subprocess.run(command, check=False, cwd=folder, env=bare, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    if subprocess.run([tools / "bin" / "pip", "install", "--quiet", "pipx"], check=False).returncode:
        pytest.skip("pipx cannot be installed here")
    bare_wheel = _without_dependencies(build_wheel(tmp_path), tmp_path / "bare")
    run(str(tools / "bin" / "pipx"), "install", str(bare_wheel))
    (site,) = (home / "pipx" / "venvs" / "cockpit" / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))

    assert run("cockpit", "--version").startswith("cockpit ")
    assert run("bash", "-c", COMPLETE).split() == ["train"]
    table = run("cockpit", "demo", "--headless", *SMALL).splitlines()
    assert [int(line.split()[0]) for line in table if re.match(r" *\d+ ", line)] == [1, 2]
    listed = json.loads(run("cockpit", "ls", "--json"))
    assert [(one["kind"], one["state"]) for one in listed] == [("training", "finished"), ("task", "finished")]


def _without_dependencies(wheel: Path, folder: Path) -> Path:
    """The same wheel, asking for no other: pipx looks for what a wheel asks for, and no option stops it."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(folder / wheel.name, "w") as bare:
        for name in whole.namelist():
            lines = whole.read(name).splitlines(keepends=True)
            kept = [line for line in lines if not (name.endswith("/METADATA") and line.startswith(b"Requires-Dist"))]
            bare.writestr(name, b"".join(kept))
    return folder / wheel.name
