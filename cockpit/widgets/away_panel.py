"""A few lines on what happened while nobody looked; there only after an absence, until it is closed."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from cockpit.core.runs.away import Away
from engines.basics.amounts import duration


class AwayPanel(Static):
    DEFAULT_CSS = """
    AwayPanel {
        display: none;
        height: auto;
        max-height: 6;
        border: round $line;
        border-subtitle-color: $quiet;
        padding: 0 1;
        background: $surface;
        &.-there { display: block; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="away", markup=False)
        self.border_subtitle = "escape close"

    @property
    def there(self) -> bool:
        return self.has_class("-there")

    def show(self, away: Away) -> None:
        intro = (f"while you were away ({duration(away.seconds)}): ", "bold $accent")
        self.update(Content.assemble(intro, " · ".join(away.happened)))
        self.add_class("-there")

    def close(self) -> None:
        self.remove_class("-there")
