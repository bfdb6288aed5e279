"""How far rollouts stay from the true game, horizon by horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engines.training.comparison import STRONGEST, WORSE, comparison
from engines.training.project import Cell, Table
from projects.melee.frames import ACTION, PERCENT, Frames, X, Y, join
from projects.melee.rules import violations

HORIZONS = (1, 5, 10, 20, 60)
LOST = 10.0
"""Game units: a fighter further from its true place is lost."""
MINUTE = 3600
"""Frames."""
LEAST_RISE = 0.01
"""Percent; less is rounding."""


MODEL, STILL, VELOCITY_LINE, TRUTH = "this run", "persistence", "constant velocity", "the real game"
"""Lines."""
BASELINES = (STILL, VELOCITY_LINE)
MEASURES: Mapping[str, tuple[str, float, str]] = {
    "Position": ("position", 0.0, "Mean over the first frames of (|Δx| + |Δy|) / 2, game units."),
    "Percent": ("percent", 0.0, "Mean error at the frame."),
    "Action": ("action", 1.0, "Share of right actions at the frame."),
    "Action changes": ("change", 1.0, "The same, where the true action begins there."),
    "Survival": ("survival", 1.0, f"Share that was never more than {LOST:g} units away."),
}
"""By the name of its table: what is measured, its value without error, and a note."""


@dataclass
class Scores:
    """Sums over rollouts that were added, a line each: of the run, its baselines and the truth; all on the device.

    They leave out a fighter that is dead or respawning anywhere from the start to the longest horizon; broken rules are
    looked for in all frames.
    """

    horizons: Sequence[int] = HORIZONS
    _sums: dict[str, dict[str, Tensor]] = field(default_factory=dict)

    def add(self, line: str, start: Frames, rolled: Frames, truth: Frames) -> None:
        """Rollouts (batch, horizon) from `start` (batch), beside the true frames after it."""
        sums = self._sums.setdefault(line, {})
        for name, value in _measured(start, rolled, truth).items():
            sums[name] = sums[name] + value if name in sums else value

    def position(self, line: str, horizon: int) -> float | None:
        """Mean over the first `horizon` frames of (|Δx| + |Δy|) / 2, in game units."""
        return self._mean(line, "position", slice(None, horizon))

    def at(self, line: str, what: str, horizon: int) -> float | None:
        """`percent`, `action`, `change` or `survival` at the frame `horizon`."""
        return self._mean(line, what, slice(horizon - 1, horizon))

    def violations(self, line: str) -> Mapping[str, float]:
        """Share of frames that break each rule."""
        sums = self._sums[line]
        return {
            name.removeprefix("rule "): float(value / sums["frames"])
            for name, value in sums.items() if name.startswith("rule ")
        }  # fmt: skip

    def hits(self, line: str) -> float:
        """Rises of percent in a minute of a game, of both fighters together."""
        sums = self._sums[line]
        return float(sums["hits"] / sums["frames"]) * 2 * MINUTE

    def _mean(self, line: str, what: str, frames: slice) -> float | None:
        sums = self._sums[line]
        count = float(sums[f"{what} count"][frames].sum())
        return float(sums[what][frames].sum()) / count if count else None

    def tables(self) -> dict[str, Table]:
        """What each measure is at each horizon, the run beside its baselines; and how often a rule is broken.

        The first table has the skill over the strongest baseline of all of them, and says where the run loses.
        """
        measures = {title: self._beside_baselines(title) for title in MEASURES}
        rules = list(self.violations(next(iter(self._sums))))
        broken = tuple(
            (line, *(rounded(self.violations(line)[rule], 5) for rule in rules)) for line in self._sums
        )  # fmt: skip
        hits = tuple((line, rounded(self.hits(line), 1)) for line in self._sums)
        return {
            "Against the baselines": self._skills(measures),
            **measures,
            "Hits": Table(("", "a minute"), hits, "rises of percent, of both fighters together"),
            "Rules broken": Table(("", *rules), broken, "share of frames; real games do some of it too"),
        }

    def _beside_baselines(self, title: str) -> Table:
        """One measure by horizon."""
        what, perfect, note = MEASURES[title]
        read = self.position if what == "position" else lambda line, h: self.at(line, what, h)

        def values(line: str) -> dict[str, float | None]:
            return {str(h): rounded(read(line, h)) for h in self.horizons}

        baselines = {line: values(line) for line in BASELINES}
        return comparison(
            values(MODEL), baselines, dict.fromkeys(map(str, self.horizons), perfect), title="", note=note
        )

    def _skills(self, measures: Mapping[str, Table]) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for title, table in measures.items():
            found = {row[0]: row[1:-1] for row in table.rows}
            skills = (value if value is None else round(float(value), 3) for value in found[STRONGEST])
            lost: dict[Cell, list[str]] = {}
            for mark, horizon in zip(found[WORSE], self.horizons, strict=True):
                lost.setdefault(mark, []).append(str(horizon))
            rows.append((title, *skills, "; ".join(f"{mark} at {', '.join(at)}" for mark, at in lost.items() if mark)))
        said = f"{STRONGEST} baseline: the share of its error that this run removes, below 0 where the run is worse"
        return Table(("", *map(str, self.horizons), "loses to"), tuple(rows), said)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """For a table."""
    return None if value is None else round(value, digits)


def _measured(start: Frames, rolled: Frames, truth: Frames) -> dict[str, Tensor]:
    """Sums by frame, (horizon,) each, with their counts; and of broken rules."""
    horizon, first = truth.frames, start.map(lambda part: part[:, None])
    gone = torch.cat([start.gone[:, None], truth.gone], dim=1).any(dim=1)
    alive = ~gone[:, None].expand(-1, horizon, -1)
    error = ((rolled.value(X) - truth.value(X)).abs() + (rolled.value(Y) - truth.value(Y)).abs()) / 2
    right = rolled.ints[..., ACTION] == truth.ints[..., ACTION]
    before = join([first, truth.at(slice(None, -1))]).ints[..., ACTION]
    changes = truth.ints[..., ACTION] != before
    kept = (error <= LOST).cummin(dim=1).values
    sums = {}
    for name, value, counted in (
        ("position", error, alive), ("survival", kept, alive), ("action", right, alive),
        ("percent", (rolled.value(PERCENT) - truth.value(PERCENT)).abs(), alive), ("change", right, alive & changes),
    ):  # fmt: skip
        sums[name] = (value * counted).double().sum(dim=(0, 2))
        sums[f"{name} count"] = counted.double().sum(dim=(0, 2))
    last = join([first, rolled.at(slice(None, -1))])
    for name, broken in violations(last, rolled).items():
        sums[f"rule {name}"] = broken.double().sum()
    sums["hits"] = (rolled.value(PERCENT) > last.value(PERCENT) + LEAST_RISE).double().sum()
    sums["frames"] = torch.ones_like(error).double().sum()
    return sums
