"""The config that a run uses: as it is, or what differs from the defaults, its parent or another run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message

from cockpit.core.config.lines import ConfigLine, change_lines, matching, resolved_lines
from cockpit.core.config.run_config import differences, edited_settings, read_config
from cockpit.core.text import plain
from cockpit.widgets.filter_line import FilterLine
from cockpit.widgets.lines_or_sentence import LinesOrSentence
from cockpit.widgets.pane import Pane
from cockpit.widgets.searchable import Searchable, find_key
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader

POLL_SECONDS = 0.2
RESOLVED = ""


@dataclass(frozen=True)
class Looked:
    """What a look found: lines, what they are in words, or why there are none."""

    against: str
    title: str
    lines: Sequence[ConfigLine] = ()
    problem: str = ""


class ConfigLines(LinesOrSentence):
    COMPONENT_CLASSES = {
        "config--section", "config--value", "config--changed", "config--added", "config--removed", "config--now",
    }  # fmt: skip
    DEFAULT_CSS = """
    ConfigLines {
        height: 1fr;
        .config--section { color: $accent; }
        .config--value, .config--changed { color: $foreground; }
        .config--added { color: $good; }
        .config--removed { color: $bad; }
        .config--now { color: $edit; text-style: bold; }
    }
    """
    FOLLOWS = False

    def __init__(self) -> None:
        super().__init__(id="config-lines", title="Config")
        self._lines: Sequence[ConfigLine] = ()

    def show(self, title: str, lines: Sequence[ConfigLine], instead: str) -> None:
        """Take the lines; `instead` of none, a sentence."""
        self.entitle(title)
        if lines and lines == self._lines:
            return
        self._lines = lines
        width = max((cell_len(line.text) + cell_len(line.now) + 3 for line in lines), default=0)
        self.fill(len(lines), width, instead)

    def line(self, index: int) -> Text:
        if self.sentence:
            return super().line(index)
        line = self._lines[index]
        text = self.styled(line.text, f"config--{line.kind}")
        if line.now:
            text.append(f"   {line.now}", self.get_component_rich_style("config--now", partial=True))
        return text


class ConfigPane(Pane, Searchable):
    BINDINGS = [
        Binding("D", "differences", "compare", id="config.differences",
                tooltip="Switch view: whole config, differences from the defaults, its parent, or another run"),
        Binding("a", "other", "other run", id="config.other", tooltip="Choose the run to compare with"),
        find_key("config.search", "Filter keys and values"),
    ]  # fmt: skip

    @dataclass
    class OtherAsked(Message):
        """The user wants to choose the run to compare with; `choose` of the pane takes it."""

        pane: ConfigPane

    @dataclass
    class Found(Message):
        """Something else is to be seen."""

        looked: Looked

    def __init__(self, run: RunDirectory) -> None:
        super().__init__(id="config-pane")
        self._run = run
        self._reader = RunReader(run)
        self._against = RESOLVED
        self._other = ""
        self._seen: object = None
        self._has_parent = False
        self._looked = Looked(RESOLVED, "Config")

    def compose(self) -> ComposeResult:
        yield ConfigLines()
        yield FilterLine()

    # -- in the poller's thread ------------------------------------------------------------------------------------

    def look(self) -> float:
        against = self._against
        self._reader.poll()
        edits = [(edit.command.id, edit.step) for edit in self._reader.history.edits_in_force]
        try:
            changed = self._run.config.stat().st_mtime_ns
        except OSError:
            changed = 0
        if self._seen != (seen := (against, changed, edits)):
            self._seen, self._has_parent = seen, self._parent_id() is not None
            self.post_message(self.Found(self._look_at(against)))
        return POLL_SECONDS

    def _parent_id(self) -> str | None:
        try:
            return self._run.info.parent
        except UserError:
            return None

    def _look_at(self, against: str) -> Looked:
        """The lines to be shown. Never raises for what files hold."""
        title = f"Config · differences from {against}"
        try:
            config = read_config(self._run)
            edited = edited_settings(config.tree, self._reader.history.edits_in_force)
            if against == RESOLVED:
                return Looked(against, "Config · resolved", resolved_lines(config, edited))
            other, rows = differences(self._run, config, against)
            return Looked(against, f"Config · {other} → this run", change_lines(rows, edited))
        except (UserError, OSError) as error:
            return Looked(against, title if against else "Config", problem=str(error))

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(Found)
    def _take(self, message: Found) -> None:
        if message.looked.against == self._against:
            self._looked = replace(message.looked, problem=plain(message.looked.problem))
            self._show()

    def _show(self) -> None:
        looked = self._looked
        lines = matching(looked.lines, self.sought)
        instead = looked.problem or ("nothing matches" if looked.lines else "no difference")
        view = self.query_one(ConfigLines)
        view.show(plain(looked.title).replace("[", r"\["), lines, instead)
        view.say(f"{len(lines)} of {len(looked.lines)} lines" if self.sought.active else self._counted())

    def _counted(self) -> str:
        if self._looked.problem:
            return ""
        if self._looked.against == RESOLVED:
            edited = sum(bool(line.now) for line in self._looked.lines)
            return f"{edited} changed while it ran" if edited else ""
        count = len(self._looked.lines)
        return f"{count} difference{'s' if count != 1 else ''}"

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_differences(self) -> None:
        """The next thing to compare with; a parent only where there is one."""
        modes = [RESOLVED, "default", *(["parent"] if self._has_parent else []), *filter(None, [self._other])]
        place = modes.index(self._against) if self._against in modes else 0
        self._against = modes[(place + 1) % len(modes)]

    def action_other(self) -> None:
        self.post_message(self.OtherAsked(self))

    def choose(self, other: RunDirectory) -> None:
        """Compare with that run."""
        self._other = self._against = other.path.name

    def seek(self) -> None:
        self._show()
