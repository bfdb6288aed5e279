"""Heads with their weights, raw losses and shares, a line each; keys change the new weight under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding

from cockpit.core.format import bar, fitted, percent
from cockpit.core.steering.loss_weights import WeightDraft, nudged, shares, typed_weight
from cockpit.core.text import fit_left, fit_right, plain
from cockpit.widgets.numbers_table import NumbersTable

SIGNS = 8
"""Heads that have a line of their own in the chart."""


@dataclass(frozen=True)
class Known:
    """What is known of the heads beside their weights."""

    losses: Mapping[str, float | None] = field(default_factory=dict)
    pulls: Mapping[str, float | None] = field(default_factory=dict)
    """The same losses times their scales, which shares are of."""
    gradients: Mapping[str, float | None] = field(default_factory=dict)
    """Norms of unweighted losses; empty before they were measured."""
    signs: Mapping[str, str] = field(default_factory=dict)
    """How the head's line is drawn in the chart."""


class WeightsTable(NumbersTable):
    COMPONENT_CLASSES = {f"weights--{name}" for name in (
        "header", "quiet", "text", "cursor", "changed", "now", "new", "gradient", "rest",
        *(f"run-{place}" for place in range(1, SIGNS + 1)),
    )}  # fmt: skip
    BINDINGS = [
        Binding("up", "move(-1)", "head", show=False, id="weights.up", tooltip="The head above"),
        Binding("down", "move(1)", "head", show=False, id="weights.down", tooltip="The head below"),
        Binding("left", "nudge(-1)", "less", show=False, id="weights.less", tooltip="A smaller weight"),
        Binding("right", "nudge(1)", "more", show=False, id="weights.more", tooltip="A greater weight"),
        Binding(
            "shift+left", "nudge(-1, True)", "a little less", show=False, id="weights.less-fine",
            tooltip="A smaller weight, by a fifth of a step",
        ),
        Binding(
            "shift+right", "nudge(1, True)", "a little more", show=False, id="weights.more-fine",
            tooltip="A greater weight, by a fifth of a step",
        ),
        Binding("e", "equalise", "equal", id="weights.equalise", tooltip="Equal shares for all heads not locked"),
        Binding("L", "lock", "lock", show=False, id="weights.lock", tooltip="Leave this head as it is, or free it"),
        Binding("delete", "reset", "defaults", show=False, id="weights.defaults", tooltip="The weights of the config"),
        Binding("u", "undo", "undo", show=False, id="weights.undo", tooltip="Take the last change of the draft back"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="heads", title="Heads")
        self.draft = WeightDraft({})
        self._known = Known()
        self._lines: list[Text] = []

    @property
    def head(self) -> str:
        """The one under the cursor; empty without heads."""
        return self.draft.heads[self.at] if self.draft.heads else ""

    @property
    def meant(self) -> dict[str, float]:
        """What ⏎ would change, what is being typed among it as far as that can be taken."""
        new = dict(self.draft.new)
        if self.typed and self.head not in self.draft.locked and (weight := typed_weight(self.typed)) is not None:
            new[self.head] = weight
        return {head: weight for head, weight in new.items() if weight != self.draft.now[head]}

    # -- showing ---------------------------------------------------------------------------------------------------

    def show(self, known: Known) -> None:
        """Take the newest facts; only lines that differ are drawn."""
        self._known = known
        self.redraw()

    def redraw(self) -> None:
        lines = self._drawn()
        before, self._lines = self._lines, lines
        self.resize_to(len(lines), 0)
        if len(before) != len(lines):
            self.refresh()
            return
        for index, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                self.refresh_index(index)

    def on_resize(self) -> None:
        self._lines = self._drawn()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._lines:  # composed in the colours of before
            self._lines = self._drawn()

    def line(self, index: int) -> Text:
        return self._lines[index] if index < len(self._lines) else Text()

    @property
    def _name_width(self) -> int:
        return max(5, min(16, max((cell_len(plain(head)) for head in self.draft.heads), default=0)))

    @property
    def _bar_width(self) -> int:
        rest = self.size.width - self._name_width - 2 - 8 - 7 - 11 - 9
        return max(2, min(24, rest // 3 - 7))

    def header(self) -> Text:
        wide = self._bar_width + 5
        text = f"  {'head':{self._name_width}}{'default':>8}{'now':>7}{'new':>9}  {'raw loss':>9}"
        titles = ("share now", "share new", "gradient") if wide > 8 else ("now", "new", "gradient")
        text += "".join(f"  {fit_left(title, wide)}" for title in titles)
        return self.styled(text, "weights--header")

    def _drawn(self) -> list[Text]:
        draft, known = self.draft, self._known
        now, new = shares(draft.now, known.pulls), shares(draft.new, known.pulls)
        pulls = shares(draft.now, known.gradients)
        return [self._drawn_line(at, head, (now[head], new[head], pulls[head])) for at, head in enumerate(draft.heads)]

    def _drawn_line(self, at: int, head: str, told: tuple[float | None, float | None, float | None]) -> Text:
        draft = self.draft
        line = self.styled(f"{self._known.signs.get(head, ' ')} ", f"weights--run-{min(at + 1, SIGNS)}")
        here = at == self.at
        line.append_text(self.styled(fit_left(plain(head), self._name_width), f"weights--{'new' if here else 'text'}"))
        line.append_text(self.styled(fit_right(f"{draft.default[head]:g}", 8), "weights--quiet"))
        line.append_text(self.styled(fit_right(f"{draft.now[head]:g}", 7), "weights--text"))
        line.append("  ").append_text(self._new_cell(head, here=here))
        line.append_text(self.styled(fit_right(fitted(self._known.losses.get(head), ".3f", 8), 9), "weights--text"))
        for share, name in zip(told, ("now", "changed", "gradient"), strict=True):
            line.append("  ").append_text(self._bar(share, name))
        return line

    def _new_cell(self, head: str, *, here: bool) -> Text:
        """Nine cells: `‹  0.8 ›` under the cursor, `■` before a locked one, `*` before a changed one."""
        weight = f"{self.typed}_" if here and self.typed else f"{self.draft.new[head]:g}"
        changed, locked = self.draft.new[head] != self.draft.now[head], head in self.draft.locked
        before = "■" if locked else "*" if changed else "‹" if here else " "
        text = f"{before}{fit_right(weight, 7)}{'›' if here else ' '}"
        return self.styled(text, f"weights--{'cursor' if here else 'changed' if changed else 'text'}")

    def _bar(self, share: float | None, name: str) -> Text:
        if share is None:
            return self.styled("·" * self._bar_width + "    —", "weights--rest")
        filled = bar(share, self._bar_width)
        text = self.styled(filled, f"weights--{name}")
        text.append_text(self.styled("·" * (self._bar_width - len(filled)), "weights--rest"))
        return text.append_text(self.styled(f"{percent(share + 5e-3):>5}", "weights--quiet"))

    # -- keys ------------------------------------------------------------------------------------------------------

    @property
    def takes_number(self) -> bool:
        return bool(self.head)

    def take(self, text: str) -> str:
        if (weight := typed_weight(text)) is None:
            return f"{text} is no weight; expected a number of 0 or more."
        if self.head in self.draft.locked:
            self._tell_locked()
        else:
            self.draft.set({self.head: weight})
        return ""

    def _tell_locked(self) -> None:
        self.tell(f"{plain(self.head)} is locked; L unlocks it.")

    def action_nudge(self, direction: int, fine: bool = False) -> None:
        if not self.head or not self.take_typed():
            return
        if self.head in self.draft.locked:
            self._tell_locked()
        else:
            self.draft.set({self.head: nudged(self.draft.new[self.head], direction, fine=fine)})
            self.changed()

    def action_lock(self) -> None:
        if self.head and self.take_typed():
            self.draft.toggle_lock(self.head)
            self.changed()

    def action_equalise(self) -> None:
        if not self.take_typed():
            return
        if not self.draft.equalise(self._known.pulls):
            self.tell("Equal shares need two heads that are not locked, have a weight and a loss.")
        self.changed()

    def action_reset(self) -> None:
        self.typed = ""
        self.draft.set(self.draft.default)
        self.changed()

    def action_undo(self) -> None:
        if self.typed:
            self.typed = ""
        elif not self.draft.undo():
            self.tell("There is nothing to undo.")
        self.changed()
