"""Learning rate and end of a run: what a person can set or ask for, and what each would do, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cockpit.core.format import number
from cockpit.core.run.model import RunModel
from cockpit.core.steering.loss_weights import nudged, rounded
from cockpit.core.steering.number_keys import typed_number
from engines.contract import commands as cmd
from engines.contract import limits
from engines.runs.history import History

Setting = Literal["rate", "epochs", "patience"]
Deed = Literal["early", "evaluate", "checkpoint"]
Row = Setting | Deed
ROWS: tuple[Row, ...] = ("rate", "epochs", "patience", "early", "evaluate", "checkpoint")
SETTINGS: tuple[Setting, ...] = ("rate", "epochs", "patience")
TITLES: dict[Row, str] = {
    "rate": "Learning rate ×", "epochs": "Epochs", "patience": "Patience, epochs", "early": "Stop early",
    "evaluate": "Evaluate now", "checkpoint": "Save a checkpoint now",
}  # fmt: skip


@dataclass
class Course:
    """Where a run is going: `now` in force, `new` as the person would have it."""

    peak: float
    now: dict[Setting, float] = field(default_factory=dict)
    new: dict[Setting, float] = field(default_factory=dict)

    @classmethod
    def of(cls, training: Mapping[str, Any]) -> Course:
        """As the section `training` of a config has it."""
        now: dict[Setting, float] = {"rate": 1.0}
        for name in SETTINGS[1:]:
            if isinstance(value := training.get(name), int):
                now[name] = value
        peak = training.get("lr")
        return cls(float(peak) if isinstance(peak, int | float) else 0.0, now, dict(now))

    def in_force(self, history: History) -> None:
        """Take what is in force by the run's edits; what was not touched goes along."""
        self._take("rate", history.lr_scale)
        if history.planned:
            self._take("epochs", history.planned)
        if history.patience:
            self._take("patience", history.patience)

    def _take(self, row: Setting, value: float) -> None:
        if self.new.get(row) == self.now.get(row):
            self.new[row] = value
        self.now[row] = value

    def nudge(self, row: Row, direction: int, *, fine: bool = False) -> None:
        """What is not known yet stays so."""
        if row not in self.now:
            return
        if row == "rate":
            nudge = nudged(self.new[row], direction, fine=fine)
            self.new[row] = min(max(nudge, limits.SMALLEST_SCALE), limits.LARGEST_SCALE)
        else:
            self.new[row] = max(1, self.new[row] + direction * (1 if fine or row == "patience" else 10))

    def type_in(self, row: Row, text: str) -> str:
        """Take typed digits; why they cannot be taken, or nothing."""
        if row in SETTINGS and row not in self.now:
            return f"{TITLES[row]}: what is in force is not known yet, so nothing can be set."
        value = typed_number(text.removesuffix("x"))
        if row == "rate":
            if value is None or limits.scale_fault(value):
                least, most = limits.SMALLEST_SCALE, limits.LARGEST_SCALE
                return f"{text} is no factor; expected a number from {least:g} to {most:g}, as in 0.5."
            self.new[row] = rounded(value)
        elif row in SETTINGS:
            if value is None or not 1 <= value <= limits.MOST_EPOCHS or value != int(value):
                return f"{text} is no number of epochs; expected a whole number of 1 or more."
            self.new[row] = value
        return ""

    def command(self, row: Row, attempt: int) -> cmd.Command | None:
        """What asks for it; None where nothing is changed."""
        match row:
            case "early":
                return cmd.StopEarly(attempt=attempt)
            case "evaluate":
                return cmd.Evaluate(attempt=attempt)
            case "checkpoint":
                return cmd.SaveCheckpoint(attempt=attempt)
        if row not in self.new or self.new[row] == self.now[row]:
            return None
        match row:
            case "rate":
                return cmd.SetLrScale(attempt=attempt, scale=self.new[row])
            case "epochs":
                return cmd.SetEpochs(attempt=attempt, epochs=int(self.new[row]))
            case "patience":
                return cmd.SetPatience(attempt=attempt, patience=int(self.new[row]))

    def ends_run(self, row: Row, model: RunModel) -> bool:
        """Whether ⏎ on this row would end the run with the epoch that runs, unless that is a better one."""
        if row == "early":
            return True
        running, best = model.history.done + 1, model.history.to_beat
        if row == "epochs":
            return self.new.get(row, running + 1) <= running
        return row == "patience" and best is not None and running - best.epoch >= self.new.get(row, running)

    def says(self, row: Row, model: RunModel) -> str:
        """What ⏎ on this row would do."""
        history = model.history
        running = history.done + 1
        best = f"epoch {history.to_beat.epoch}" if history.to_beat else "the best epoch"
        match row:
            case "early":
                return (
                    f"Epoch {running} is finished and evaluated; then the run ends as if its patience had run out: "
                    f"the best ({best} so far) is kept and exported."
                )
            case "evaluate":
                return "The validation data is gone through now. It is logged; best and patience stay as they are."
            case "checkpoint":
                return "last.pt is written now, whole or not at all. best.pt stays as it is, and the run goes on."
        if self.command(row, 0) is None:
            return "Nothing is changed: ←→ or digits set a new value."
        now, new = self.now[row], self.new[row]
        match row:
            case "rate":
                peak = f"a peak of {number(self.peak * new, '.2e')} instead of {number(self.peak * now, '.2e')}"
                return (
                    f"From the next step on the configured schedule is multiplied by {new:g}: {peak}, its shape stays."
                )
            case "epochs":
                soonest = f" It can end after epoch {running} at the soonest." if new < running else ""
                return f"The run ends after epoch {new:g} instead of {now:g}; the schedule is stretched to it.{soonest}"
            case "patience":
                since = f"; now it has been {running - 1 - history.to_beat.epoch}" if history.to_beat else ""
                ends = f" It ends after epoch {running} if that is no better." if self.ends_run(row, model) else ""
                return f"The run ends after {new:g} epochs without a better score, instead of {now:g}{since}.{ends}"
