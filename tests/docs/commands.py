"""Every command that README and docs name, as a shell would get it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("behaviours.md", "fuzzing.md", "reliability.md")
"""Written by programs, whose names alone they hold."""
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED)]
NO_COMMANDS = {"cockpit . 2 running": "the title of a terminal"}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(
    r"(?:^|[\s(])((?:[A-Z_]+=\S+ +)*"
    r"(?:\./run|cockpit|\./test|(?:\.venv/bin/)?python(?: -P)? -m \S+|pip install)(?= |$).*)"
)
"""A command in a line, after a prompt or inside a script."""
ALTERNATIVES = re.compile(r" \[(--[^\]]*)\]")


@dataclass(frozen=True)
class Command:
    """One command of one page; `text` as it is written there."""

    page: str
    text: str

    def words(self) -> list[str]:
        """Without variables before it."""
        found = shlex.split(self.text)
        while re.fullmatch(r"[A-Z_]+=.*", found[0]):
            found.pop(0)
        return found

    def extras(self) -> list[str]:
        """Those that `COCKPIT_EXTRAS` or pip name."""
        asked = re.findall(r"COCKPIT_EXTRAS=(\S+)|cockpit\[(\w+)\]", self.text)
        return [extra for one, other in asked for extra in (one or other).split(",")]

    def variants(self) -> list[Command]:
        """As written, with what stands in brackets left out, and with each of its alternatives."""
        found = ALTERNATIVES.search(self.text)
        if found is None:
            return [self]
        before, after = self.text[: found.start()], self.text[found.end() :]
        inside = ["", *(f" {each.strip()}" for each in found[1].split(" | "))]
        return [one for each in inside for one in Command(self.page, before + each + after).variants()]


def of_page(page: Path) -> list[Command]:
    text = page.read_text(encoding="utf-8")
    found = [line for info, block in BLOCK.findall(text) if not info.startswith("python") for line in _lines(block)]
    prose = BLOCK.sub("", text)
    if page.name == "README.md":  # a cell of its tables says ./run once
        for row in re.findall(r"^\| (`\./run.*?) \|", prose, re.MULTILINE):
            found += [f"./run {span.removeprefix('./run').strip()}".strip() for span in SPAN.findall(row)]
        prose = re.sub(r"^\| `\./run.*? \|", "", prose, flags=re.MULTILINE)
    found += [span for span in SPAN.findall(prose) if (match := COMMAND.match(span)) and match.start(1) == 0]
    return [Command(page.name, text) for text in dict.fromkeys(found) if text not in NO_COMMANDS]


def _lines(block: str) -> list[str]:
    """The commands of a block, each whole, without comments and without what closes the script around it."""
    whole = re.sub(r"\s*\\\n\s*", " ", block)
    found = [match[1] for line in whole.splitlines() if (match := COMMAND.search(re.sub(r"\s+# .*", "", line)))]
    return [one.rstrip(")'").rstrip() if one.count("'") % 2 else one.rstrip() for one in found]


def paths(page: Path) -> list[str]:
    """Files and folders of the project, and tests in them, that a page names."""
    spans = SPAN.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    folders = r"(?:cockpit|engines|projects|configs|tests|docs|scripts|benchmarks)/[\w./-]+(?:::\w+)?"
    return [span for span in spans if re.fullmatch(folders, span)]


def modules(page: Path) -> list[str]:
    """Modules of the project, and what is in them, that a page names with dots."""
    spans = SPAN.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    return [span for span in spans if re.fullmatch(r"(?:cockpit|engines|projects|benchmarks|scripts)(?:\.\w+)+", span)]
