"""Loss weights while the run goes on: what each head weighs now, what an edit would change, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from textual import on
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget

from cockpit.core.format import count
from cockpit.core.plot.axis import extent
from cockpit.core.plot.frame import Sign, View
from cockpit.core.plot.groups import RUN_ROLES
from cockpit.core.plot.lines import Look
from cockpit.core.run.orders import Order
from cockpit.core.settings import SettingsFile
from cockpit.core.steering.loss_weights import WeightDraft, configured, recent_means, scaled
from cockpit.core.steering.presets import Presets
from cockpit.core.text import plain
from cockpit.screens.followed import FollowedRunScreen
from cockpit.screens.presets import PresetScreen
from cockpit.screens.unapplied import Changes
from cockpit.screens.working import refuse
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.metric_chart import Drawing, MetricChart
from cockpit.widgets.steady import Steady
from cockpit.widgets.weights_table import Known, WeightsTable
from engines.contract.commands import MeasureGradients, SetLossWeights
from engines.contract.rundir import RunDirectory

SMOOTHING = 0.9
LAST_ORDERS = 2
INDEPENDENT = "The validation loss depends on the weights; score and best do not."


class WeightsScreen(FollowedRunScreen):
    CSS_PATH = "weights.tcss"
    CHANGING = ("apply", "measure")
    BINDINGS = [
        Binding("enter", "apply", "apply", id="weights.apply", tooltip="Apply the new weights at the next step"),
        Binding(
            "E", "apply_at_epoch", "next epoch", id="weights.apply-epoch", tooltip="Apply them after this epoch"
        ),
        Binding(
            "g", "measure", "grad", id="weights.measure",
            tooltip="Measure each head's gradient on shared parameters: one backward pass per head, on one batch",
        ),
        Binding("o", "presets", "presets", show=False, id="weights.presets", tooltip="Use or save named weights"),
        Binding("y", "log", "log scale", show=False, id="weights.log", tooltip="Losses on a logarithmic scale"),
        FollowedRunScreen.BACK,
    ]  # fmt: skip

    def __init__(self, run: RunDirectory, clock: Callable[[], float], settings: SettingsFile) -> None:
        super().__init__(run, clock)
        self._folder = settings.path.parent / "presets"
        self._project = ""
        self._losses: dict[str, float | None] = {}
        self._log_scale = False

    def body(self) -> Iterator[Widget]:
        yield WeightsTable()
        pending = Steady(id="pending", classes="pane", markup=False)
        pending.border_title = "Pending"
        yield pending
        chart = MetricChart("Raw losses", id="losses")
        chart.can_focus = False
        yield chart

    @property
    def table(self) -> WeightsTable:
        return self.query_one(WeightsTable)

    def begin(self, config: Mapping[str, Any]) -> None:
        numbers = configured(config)
        self._project = str(config.get("project", ""))
        self.table.draft = WeightDraft(numbers)
        self.table.styles.height = len(numbers) + 3
        self.table.focus()
        if not numbers:
            refuse(self, "This run has no loss weights.")

    # -- showing ---------------------------------------------------------------------------------------------------

    def show(self) -> None:
        draft, history = self.table.draft, self.model.history
        draft.follow(history)
        self._losses = recent_means(self.curves.series, draft.heads)
        glyphs = glyphs_of(self.app)
        signs = dict(zip(draft.heads, glyphs.runs, strict=False))
        norms = history.gradients.norms if history.gradients else {}
        self.table.show(Known(self._losses, scaled(self._losses, self.curves.series), norms, signs))
        self._show_pending()
        self._show_chart()
        self.refresh_keys()

    def _show_pending(self) -> None:
        lines = [self._changes(), Content.styled(INDEPENDENT, "$quiet"), *self._last_orders()]
        self.query_one("#pending", Steady).update(Content("\n").join(lines))
        measured = self.model.history.gradients
        said = f"gradient measured at step {count(measured.step)}" if measured else "press g to measure gradient shares"
        self.table.border_subtitle = said

    def _changes(self) -> Content:
        draft = self.table.draft
        changes = [f"{plain(head)} {draft.now[head]:g} → {weight:g}" for head, weight in self.table.meant.items()]
        if not changes:
            return Content.styled("no changes", "$quiet")
        many = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
        return Content.assemble((f"{many}   ", "bold $edit"), "   ".join(changes))

    def _last_orders(self) -> list[Content]:
        if not (last := self.orders.known(SetLossWeights, MeasureGradients)[:LAST_ORDERS]):
            return [Content.styled("↑↓ head   ←→ weight   0-9 type   L lock   del defaults   o presets", "$quiet")]
        return [self.orders.told(one, _asked(one)) for one in last]

    def _show_chart(self) -> None:
        named = [(head, self.curves.series[head]) for head in self.table.draft.heads if head in self.curves.series]
        members = list(zip(RUN_ROLES, (one for _, one in named), strict=False))
        start, end = extent([one for _, one in members], "step")
        view = View("step", start, max(end, start + 1.0))
        signs = tuple(Sign(mark.kind, mark.step) for mark in self.curves.marks if mark.kind == "edit")
        look = Look(smoothing=SMOOTHING, log=self._log_scale)
        glyphs = glyphs_of(self.app)
        self.query_one(MetricChart).show(members, Drawing(look, view, signs, glyphs, legend=True))

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("apply", "apply_at_epoch"):
            table = self.table if self.is_mounted else None
            return (table is not None and self.orders.can and bool(table.draft.changes or table.typed)) or None
        if action == "measure":
            return self.orders.can or None
        return True

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if action not in ("apply", "apply_at_epoch", "measure"):
            return ""
        return self.orders.why_not or "No weight was changed: left and right change the one under the cursor."

    @on(WeightsTable.Changed)
    def _draft_changed(self) -> None:
        self._show_pending()
        self.refresh_keys()

    @on(WeightsTable.Told)
    def _tell(self, message: WeightsTable.Told) -> None:
        self.notify(message.sentence, severity="warning", markup=False)

    def action_apply(self) -> None:
        self._apply(None)

    def action_apply_at_epoch(self) -> None:
        self._apply(self.model.history.done + 1)

    def _apply(self, at_epoch: int | None) -> None:
        if self.table.take_typed() and (changes := self.table.draft.changes):
            self.orders.give(SetLossWeights(attempt=self.orders.attempt, weights=changes, at_epoch=at_epoch))

    def action_measure(self) -> None:
        self.orders.give(MeasureGradients(attempt=self.orders.attempt))

    def action_log(self) -> None:
        self._log_scale = not self._log_scale
        self._show_chart()

    def action_back(self) -> None:
        if self.table.typed:
            self.table.action_undo()
        else:
            super().action_back()

    def _left(self) -> dict[str, float]:
        """The changes of the draft that no order from here has asked for."""
        asked: dict[str, float] = {}
        for command in self.orders.given(SetLossWeights):
            asked |= command.weights if isinstance(command, SetLossWeights) else {}
        return {head: weight for head, weight in self.table.draft.changes.items() if asked.get(head) != weight}

    def unapplied(self) -> Changes | None:
        if not (left := self._left()):
            return None
        now = self.table.draft.now
        words = ", ".join(f"{head} {now[head]:g} → {weight:g}" for head, weight in left.items())
        return Changes(f"Loss weights: {words}", "apply at the next step, then close", self.orders.why_not)

    def apply(self) -> None:
        self.orders.give(SetLossWeights(attempt=self.orders.attempt, weights=self._left()))

    # -- presets ---------------------------------------------------------------------------------------------------

    def action_presets(self) -> None:
        draft = self.table.draft
        presets = Presets(self._folder, self._project)
        self.app.push_screen(PresetScreen(presets, draft.new, draft.default), self._take_preset)

    def _take_preset(self, weights: Mapping[str, float] | None) -> None:
        if weights is not None:
            self.table.draft.set(weights)
            self.table.redraw()
            self._draft_changed()


def _asked(order: Order) -> str:
    if not isinstance(order.command, SetLossWeights):
        return "gradient"
    return ", ".join(f"{plain(head)} {weight:g}" for head, weight in order.command.weights.items())
