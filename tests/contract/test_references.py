"""What a name in a spec or a config names is imported, or a sentence says what is missing and what to do."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from engines.basics.errors import UserError
from engines.contract import references
from engines.contract.events import Ended
from engines.runtime import attempt as attempts
from tests.support.fake_run import FakeRun


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a user's own modules, of which one lies beside the config and is not on the path."""
    for name, text in {
        "good.py": "from dataclasses import dataclass\n@dataclass\nclass Rovers:\n    class Inner:\n        pass\n",
        "lacks.py": "import no_such_package.inner\n",
        "needs_extra.py": "import wandb_core\n",
        "typing_slip.py": "x = 1\nclass A(:\n",
        "fails.py": "def f():\n    return 1 / 0\n\nf()\n",
        "leaves.py": "raise SystemExit('bye')\n",
        "old.py": "import json.no_such_part\n",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(metadata, "requires", lambda name: ["torch>=2", 'wandb-core>=0.19; extra == "sim"'])
    yield tmp_path
    sys.modules.pop("good", None)


@pytest.mark.behaviour("class-package-project-cannot")
@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("good", "'good': expected package.module:Name or path/to/file.py:Name."),
        ("good:", "'good:': expected"),
        ("good:a b", "'good:a b': expected"),
        ("good:Rover", r"good:Rover: good has no 'Rover' \(did you mean 'Rovers'\?\)\."),
        ("nowhere:X", "nowhere:X cannot be imported: the package nowhere is not installed; .*-m pip install nowhere`"),
        ("lacks:X", "package no_such_package is not installed; install it, as with `.*-m pip install no_such_package`"),
        (
            "needs_extra:X",
            r"wandb_core is not installed; start with `COCKPIT_EXTRAS=sim \./run …`, or .*\[sim\]",
        ),
        ("typing_slip:X", r"cannot be imported: .*typing_slip\.py:2: invalid syntax"),
        ("fails:X", r"cannot be imported: ZeroDivisionError: division by zero \(.*fails\.py:2\)\."),
        ("leaves:X", "cannot be imported: SystemExit: bye"),
        ("old:X", r"there is no module json\.no_such_part; check its name"),
        ("none.py:X", r"none\.py:X: no file /.*none\.py\."),
    ],
)
def test_what_cannot_be_had_is_one_sentence(user: Path, reference: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        references.load(reference)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_class_of_a_file_beside_the_config_is_found(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    found = references.load("good.py:Rovers", beside=user)
    assert found.__name__ == "Rovers"
    assert references.load(f"{user}/good.py:Rovers") is found, "a file is read once"
    assert references.load(f"{user}/good.py:Rovers.Inner") is found.Inner
    with pytest.raises(UserError, match="ZeroDivisionError"):
        references.load("fails.py:X", beside=user)
    assert not [name for name in sys.modules if name.startswith("fails_")], "half a module stays nowhere"


@pytest.mark.behaviour("class-package-project-cannot")
def test_a_package_that_is_missed_while_an_engine_works_is_its_last_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = FakeRun(tmp_path).begin().run

    def work(attempt: attempts.Attempt) -> Ended:
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401

        raise AssertionError

    assert attempts.carry_out(run, 1, work) == 1
    command = f"{shlex.quote(sys.executable)} -m pip install no_such_package"
    sentence = f"the package no_such_package is not installed; install it, as with `{command}`."
    assert capfd.readouterr().err.splitlines() == [sentence]
