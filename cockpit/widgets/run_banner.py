"""What is wrong with a run, in a line; not there when nothing is."""

from __future__ import annotations

from rich.text import Text

from cockpit.core.model import RunModel
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
        &.-bad { color: $bad; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="banner", markup=False)

    def show(self, model: RunModel) -> None:
        words = [model.problem] if model.problem else []
        words += [] if model.live or not model.status.detail else [model.status.detail]
        words += model.damaged
        text = Text(" · ".join(plain(word) for word in words))
        self.set_class(bool(words), "-shown")
        self.set_class(model.status.state in ("failed", "lost"), "-bad")
        self.update(text)
