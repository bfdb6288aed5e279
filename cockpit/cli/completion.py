"""Completion in the shell: of commands, options, runs, configs and the keys of `--set`.

argcomplete asks the real parser, so what completes is what can be typed. Only asked for by a shell: nothing here is
imported by a command.
"""

from __future__ import annotations

import argparse
import os
import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

from cockpit.cli import codes

SHELLS = ("bash", "zsh", "fish")
MOST = 200
"""Runs that are offered, the newest."""


def completion(arguments: Namespace) -> int:
    """Print what a shell must read to complete `cockpit`, or install it. Raises `UserError`."""
    from argcomplete.shell_integration import shellcode

    from cockpit.cli.printing import say, show
    from engines.basics.errors import UserError

    shell = arguments.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise UserError(f"completion: name a shell: {', '.join(SHELLS)}.")
    text = shellcode(["cockpit"], shell=shell)
    if not arguments.install:
        show(text)
        return codes.DONE
    try:
        where = _install(shell, text)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be written ({error.strerror}).", exit_code=1) from None
    say(f"{where}; open a new shell to use it")
    return codes.DONE


def _install(shell: str, text: str) -> str:
    """Write the shell's file, and for bash and zsh one line of its rc file that reads it; what was done."""
    home = Path.home()
    if shell == "fish":
        file = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions" / "cockpit.fish"
    else:
        file = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "cockpit" / f"completion.{shell}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if shell == "fish":
        return f"wrote {file}"
    begin = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc" if shell == "zsh" else home / ".bashrc"
    line = f"[ -r {shlex.quote(str(file))} ] && . {shlex.quote(str(file))}  # cockpit completion"
    if shell == "zsh":
        line = f"autoload -Uz compinit && compinit; {line}"
    before = begin.read_text(encoding="utf-8") if begin.exists() else ""
    if line in before.splitlines():
        return f"wrote {file}, which {begin} reads already"
    with open(begin, "a", encoding="utf-8") as opened:
        opened.write(("" if not before or before.endswith("\n") else "\n") + line + "\n")
    return f"wrote {file} and a line in {begin} that reads it"


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and leave, where one asks."""
    import argcomplete

    for command in _all_parsers(parser):
        command._sorting = True  # type: ignore[attr-defined]  # names before options, so that _settings knows the config
        for action in command._actions:
            if action.dest in ("run", "runs", "with_"):
                action.completer = _runs  # type: ignore[attr-defined]
            elif action.dest in ("config", "target"):
                action.completer = _configs  # type: ignore[attr-defined]
            elif action.dest in ("overrides", "sweep"):
                action.completer = _settings  # type: ignore[attr-defined]
            elif action.dest == "project":
                action.completer = _projects  # type: ignore[attr-defined]
            elif action.dest == "metrics":
                action.completer = _metrics  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _all_parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found += _all_parsers(below)
    return found


def _runs(prefix: str, **rest: Any) -> dict[str, str]:
    """Ids, words and labels of the newest runs that begin as typed, each with what it is."""
    from cockpit.core.text import plain
    from engines.basics.errors import DataError
    from engines.runs.store import list_runs, word_of

    found = {"last": "the newest training"}
    for run in list_runs()[:MOST]:
        try:
            info = run.info
        except DataError:
            continue
        words = plain(info.label or info.title)
        found |= {name: words for name in (word_of(info.id), info.id, plain(info.label)) if name}
    return {name: words for name, words in found.items() if name.startswith(prefix)}


def _configs(prefix: str, **rest: Any) -> list[str]:
    """YAML files and folders that begin as typed, and the configs that come with the program."""
    from argcomplete.completers import FilesCompleter

    from cockpit.core.config.configs import find_configs

    shown = [str(config.path) for config in find_configs()]
    return [*FilesCompleter(allowednames=("yaml", "yml"))(prefix), *(path for path in shown if path.startswith(prefix))]


def _settings(prefix: str, parsed_args: Namespace, **rest: Any) -> dict[str, str]:
    """`section.key=` of the config that was typed before, with what each means."""
    from cockpit.core.launch.form import open_form
    from engines.basics.errors import UserError

    try:
        fields = open_form(Path(parsed_args.config).expanduser()).fields
    except (AttributeError, TypeError, UserError):
        return {}
    return {f"{field.name}=": field.help for field in fields[1:] if field.name.startswith(prefix)}


def _projects(prefix: str, **rest: Any) -> list[str]:
    from engines.contract.spec import installed

    return [name for name in installed() if name.startswith(prefix)]


def _metrics(prefix: str, parsed_args: Namespace, **rest: Any) -> list[str]:
    from cockpit.cli.metrics import chosen
    from engines.basics.errors import UserError
    from engines.runs.store import find_training

    try:
        return [name for name in chosen(find_training(parsed_args.run), ()) if name.startswith(prefix)]
    except (AttributeError, UserError):
        return []
