"""The terminal that the cockpit is drawn on: locale, kind, colours, and what keeps it open over SSH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cockpit.core.ascii import PLAIN_TERMINALS, needs_ascii
from cockpit.core.doctor.finding import Finding, ok, warn


@dataclass(frozen=True)
class TerminalFacts:
    """By the environment alone."""

    locale: str
    """The name in force; empty where none is set."""
    ascii_only: bool
    term: str
    colours: int
    """That the terminal reports; 2: none."""
    no_colour: bool
    """$NO_COLOR is set."""
    ssh: bool
    kept_by: str
    """`tmux` or `screen` around this shell; empty for neither."""


def read_terminal(environment: Mapping[str, str] = os.environ, encoding: str = sys.stdout.encoding) -> TerminalFacts:
    """What the environment says of the terminal."""
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    term = environment.get("TERM", "")
    return TerminalFacts(
        locale=next(filter(None, names), ""), ascii_only=needs_ascii(environment, encoding), term=term,
        colours=_colours(term, environment.get("COLORTERM", "")), no_colour=bool(environment.get("NO_COLOR")),
        ssh=bool(environment.get("SSH_CONNECTION")),
        kept_by="tmux" if environment.get("TMUX") else "screen" if environment.get("STY") else "",
    )  # fmt: skip


def _colours(term: str, colorterm: str) -> int:
    if colorterm in ("truecolor", "24bit"):
        return 1 << 24
    if "256color" in term:
        return 256
    return 2 if term in PLAIN_TERMINALS - {"linux"} else 8


def terminal_findings(facts: TerminalFacts) -> Iterator[Finding]:
    """Findings about the locale, the terminal and the session."""
    plain_kind = facts.term in PLAIN_TERMINALS
    if facts.ascii_only and not plain_kind:
        named = f"The locale {facts.locale}" if facts.locale else "The output"
        yield warn("locale", f"{named} is not UTF-8: charts are drawn in ASCII.", "export LC_ALL=C.UTF-8")
    else:
        yield ok("locale", f"The locale is {facts.locale or 'not set, which counts as UTF-8'}.")
    if plain_kind:
        shown = f"TERM is {facts.term}" if facts.term else "TERM is not set"
        yield warn("terminal", f"{shown}: the cockpit draws in ASCII.", "export TERM=xterm-256color")
    elif facts.kept_by and not facts.term.startswith(("tmux", "screen")):
        text = f"TERM is {facts.term} inside {facts.kept_by}: keys and colours may be wrong."
        yield warn("terminal", text, f"export TERM={facts.kept_by}-256color")
    else:
        yield ok("terminal", f"TERM is {facts.term}.")
    yield _colour_finding(facts)
    yield _session(facts)


def _colour_finding(facts: TerminalFacts) -> Finding:
    if facts.no_colour:
        return ok("colours", "NO_COLOR is set: everything is grey, with a word or a sign for each state.")
    if facts.colours < 256:
        text = f"The terminal reports {facts.colours} colours: curves differ by sign and dash alone."
        return warn("colours", text, "export COLORTERM=truecolor  # if your terminal has them")
    return ok("colours", "The terminal has " + ("256 colours." if facts.colours == 256 else "all colours."))


def _session(facts: TerminalFacts) -> Finding:
    if facts.kept_by:
        return ok("session", f"This shell is inside {facts.kept_by}: a dropped connection closes nothing.")
    if facts.ssh:
        text = (
            "This SSH session is not inside tmux or screen: a dropped connection closes the cockpit; runs keep running."
        )
        return Finding("session", "ok", text, "tmux new -A -s cockpit")
    return ok("session", "This is not an SSH session.")
