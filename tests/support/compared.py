"""Comparisons of fabricated runs, read to their end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cockpit.core.compare.drawn import Comparison, DrawnLines, Slot
from cockpit.core.compare.lines import every_run
from cockpit.core.compare.model import CompareModel
from cockpit.core.compare.table import Choice
from cockpit.core.runs.fleet import Fleet
from tests.support.fake_run import CONFIG, FakeRun, epoch


def configured(folder: Path, word: str, *scores: float, label: str = "", at: int = 0, **settings: object) -> FakeRun:
    """A run with these scores of its epochs, the best of them marked, and `training.<name>` set."""
    fake = FakeRun(folder, f"controls-20261127-{201400 + at}-{word}", label=label, created=1e9 + at).begin().started()
    lines = "".join(f"  {name}: {value}\n" for name, value in settings.items())
    fake.run.config.write_text(CONFIG + (f"training:\n{lines}" if lines else ""))
    top = max(scores, default=0.0)
    return fake.say(*(epoch(n, score=score, best=score == top) for n, score in enumerate(scores, 1)))


def model_of(fakes: Sequence[FakeRun], choice: Choice | None = None, folder: Path | None = None) -> CompareModel:
    """All of them read."""
    model = CompareModel([fake.run for fake in fakes], Fleet(folder or fakes[0].run.path.parent), lambda: 2e9)
    if choice is not None:
        model.choose(choice)
    model.poll()
    while model.loading:
        model.poll()
    model.poll()
    return model


def drawn(fakes: Sequence[FakeRun]) -> Comparison:
    """All of them as lines of the charts."""
    lines = DrawnLines()
    lines.draw([Slot(line) for line in every_run(model_of(fakes).compared.entries)])
    lines.poll()
    return lines.comparison
