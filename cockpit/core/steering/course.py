"""Learning rate and end of a run: what the user can set or ask for, and a sentence that says what each would do."""

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
    """The settings that decide how a run goes on: `now` in force, `new` as the user wants them."""

    peak: float
    running: int = 1
    """The epoch that runs: a run cannot end after an earlier one."""
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
        return cls(float(peak) if isinstance(peak, int | float) else 0.0, now=now, new=dict(now))

    def in_force(self, history: History) -> None:
        """Take what is in force by the run's edits, also as the new value where the user has changed nothing."""
        self.running = history.done + 1
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
            return f"{TITLES[row]}: the current value is not known yet, so it cannot be changed."
        value = typed_number(text.removesuffix("x"))
        if row == "rate":
            if value is None or limits.scale_fault(value):
                least, most = limits.SMALLEST_SCALE, limits.LARGEST_SCALE
                return f"{text} is not a factor; expected a number from {least:g} to {most:g}, as in 0.5."
            self.new[row] = rounded(value)
        elif row in SETTINGS:
            if value is None or not 1 <= value <= limits.MOST_EPOCHS or value != int(value):
                return f"{text} is not a number of epochs; expected a whole number of 1 or more."
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
                return cmd.SetEpochs(attempt=attempt, epochs=max(int(self.new[row]), self.running))
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
                    f"The run finishes and evaluates epoch {running}, then ends as if patience had run out: "
                    f"the best ({best} so far) is kept and exported."
                )
            case "evaluate":
                return "Evaluates on the validation data now and logs the result. Best and patience do not change."
            case "checkpoint":
                return "Writes last.pt now, in one piece or not at all. best.pt does not change; the run continues."
        if self.command(row, 0) is None:
            return "No change: ←→ or digits set a new value."
        now, new = self.now[row], self.new[row]
        match row:
            case "rate":
                peak = f"a peak of {number(self.peak * new, '.2e')} instead of {number(self.peak * now, '.2e')}"
                return f"From the next step, the configured schedule is multiplied by {new:g}: {peak}; same shape."
            case "epochs":
                over = f"Epoch {new:g} is already over: the run would end" if new < running else "The run ends"
                fitted = "compressed" if new < now else "stretched"
                return f"{over} after epoch {max(new, running):g} (was {now:g}); the schedule is {fitted} to fit."
            case "patience":
                since = f"; so far {running - 1 - history.to_beat.epoch}" if history.to_beat else ""
                ends = f" It ends after epoch {running} if that is no better." if self.ends_run(row, model) else ""
                return f"The run ends after {new:g} epochs without a better score, instead of {now:g}{since}.{ends}"
