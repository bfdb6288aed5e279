"""Projects are found by their entry points; a broken one is shown and harms no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engines.basics.errors import UserError, nearest
from engines.contract import spec as specs


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three installed projects: one that fails, one that names something else, one that is whole."""
    (tmp_path / "third_party.py").write_text(
        "from engines.contract.spec import Spec\n"
        "NOT_A_SPEC = 5\n"
        "WHOLE = Spec(name='whole', title='Whole', config='c:C', project='p:P', columns=(), heads=())\n"
    )
    (tmp_path / "failing.py").write_text("raise ZeroDivisionError('in the project')\n")
    info = tmp_path / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{specs.GROUP}]\nfails = failing:SPEC\nother = third_party:NOT_A_SPEC\nwhole = third_party:WHOLE\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_broken_project_is_shown_and_harms_no_other(third_party: Path) -> None:
    installed = specs.installed()
    assert isinstance(installed["whole"], specs.Spec)
    assert isinstance(installed["controls"], specs.Spec)
    assert installed["fails"] == specs.BrokenSpec(
        "fails", f"ZeroDivisionError: in the project ({third_party}/failing.py:1)"
    )
    assert installed["other"] == specs.BrokenSpec("other", "third_party:NOT_A_SPEC is a int, expected a Spec")
    assert specs.find("whole").title == "Whole"


@pytest.mark.behaviour("class-package-project-cannot")
@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("contrls", r"No project is called 'contrls' \(did you mean 'controls'\?\); installed: .*controls.*whole"),
        ("fails", r"The project 'fails' cannot be loaded: ZeroDivisionError: in the project \(.*failing.py:1\)\.$"),
        ("walk.spec:SPEC", r"'walk.spec:SPEC' is no installed project \(agent, controls.*`pip install -e \.`"),
        ("walk/spec.py:SPEC", r"'walk/spec.py:SPEC' is no installed project"),
    ],
)
def test_a_project_that_cannot_be_had_is_one_sentence(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        specs.find(name)


def test_a_task_that_is_no_task_is_said_when_the_spec_is_read() -> None:
    with pytest.raises(TypeError, match="the task 'make' is a str, expected a Task"):
        specs.Spec(name="a", title="", config="", project="", columns=(), heads=(), tasks={"make": "m:f"})  # type: ignore[dict-item]


def test_references_are_loaded() -> None:
    assert specs.load("engines.basics.errors:nearest") is nearest
    assert specs.load_function("engines.basics.errors:nearest")("ab", ["abc"]) == " (did you mean 'abc'?)"


def test_the_nearest_name_is_offered_only_when_it_is_near() -> None:
    assert nearest("epocs", ["epochs", "lr"]) == " (did you mean 'epochs'?)"
    assert nearest("zzz", ["epochs", "lr"]) == ""


def test_reading_the_specs_imports_nothing_heavy() -> None:
    code = (
        "import sys; from engines.contract import spec; from engines.runs import state, launch; spec.installed(); "
        "print(sorted({'torch', 'pydantic', 'textual', 'yaml'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
