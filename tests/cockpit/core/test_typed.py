"""Commands in sentences can be typed as they stand there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from cockpit.cli.arguments import parse
from cockpit.core.launch.form import new_form
from cockpit.core.typed import program, typed


@pytest.mark.behaviour("hints-can-be-typed")
@pytest.mark.parametrize(
    ("started", "argv", "said"),
    [
        ("./run", "/clone/.venv/bin/cockpit", "./run"),
        ("../my clone/run", "cockpit", "'../my clone/run'"),
        ("", ".venv/bin/cockpit", ".venv/bin/cockpit"),
        ("", "/site-packages/cockpit/cli/__main__.py", "cockpit"),
        ("", "/site-packages/cockpit/__main__.py", f"{shlex.quote(sys.executable)} -m cockpit"),
        ("\x1b[2J", "", "cockpit"),
    ],
)
def test_hints_name_what_starts_the_program_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, argv: str, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_COMMAND", started)
    monkeypatch.setattr(sys, "argv", [argv])
    assert program() == said
    assert typed("`cockpit ls` or `cockpit show RUN`; cockpit") == f"`{said} ls` or `{said} show RUN`; cockpit"
    found = tmp_path / "cockpit"
    found.touch(0o755)
    assert program() == "cockpit"


@pytest.mark.behaviour("hints-can-be-typed")
def test_help_and_the_command_of_the_form_do_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_COMMAND", "./run")
    with pytest.raises(SystemExit):
        parse(["train", "--help"])
    assert capsys.readouterr().out.startswith("usage: ./run train")
    monkeypatch.setattr(sys, "argv", ["cockpit"])
    form = new_form("controls")
    form.path = Path("a config.yaml")
    assert form.command == "./run train 'a config.yaml'"


@pytest.mark.behaviour("hints-can-be-typed")
def test_the_script_of_the_clone_says_how_it_was_started() -> None:
    script = (Path(__file__).parents[3] / "run").read_text()
    assert 'export COCKPIT_COMMAND="$0"' in script
