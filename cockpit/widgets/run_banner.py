"""What is wrong with a run, a line each, the newest alert first; not there when nothing is."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from cockpit.core.run.alerts import sentence
from cockpit.core.run.model import RunModel
from cockpit.core.text import plain
from cockpit.widgets.steady import Steady


class RunBanner(Steady):
    DEFAULT_CSS = """
    RunBanner {
        display: none;
        height: auto;
        max-height: 3;
        padding: 0 1;
        color: $quiet;
        &.-shown { display: block; }
        &.-warned { color: $best; }
        &.-bad { color: $bad; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="banner", markup=False)

    def show(self, model: RunModel, key: Callable[[str], str]) -> None:
        """Take the newest facts; `key` gives the key of a binding, for what to do about an alert."""
        alerts = model.alerts
        words = [model.problem] if model.problem else []
        words += [] if model.live or not model.status.detail else [model.status.detail]
        words += model.damaged
        lines = [" · ".join(plain(word) for word in words)] if words else []
        text = Text("\n".join([*lines, *(f"! {sentence(alert, key)}" for alert in alerts)]))
        self.set_class(bool(words or alerts), "-shown")
        self.set_class(bool(alerts), "-warned")
        grave = any(alert.level == "error" for alert in alerts)
        self.set_class(grave or model.status.state in ("failed", "lost"), "-bad")
        self.update(text)
