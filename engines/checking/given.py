"""Numbers that a user gives to a check in place of measured ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engines.basics.errors import UserError, nearest
from engines.contract import spec as specs
from engines.contract.config import LoadedConfig


@dataclass(frozen=True)
class Given:
    """Each None where it is to be measured, or read from the config.

    step_seconds: of a step, in every stage. usd_per_hour: price of the machine. samples: of the training data. counts:
    the same in units of the project (`Spec.counts`), as {"games": 100000}.
    """

    step_seconds: float | None = None
    usd_per_hour: float | None = None
    samples: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def numbers(self) -> dict[str, float]:
        """What was given, by name."""
        known = {"step_seconds": self.step_seconds, "usd_per_hour": self.usd_per_hour, "samples": self.samples}
        return {name: number for name, number in known.items() if number is not None} | dict(self.counts)

    def in_samples(self, loaded: LoadedConfig) -> Given:
        """With its counts as samples of the project.

        Raises `UserError` for numbers that are none, for samples given twice, and for a unit that is not the project's.
        """
        for name, number in self.numbers().items():
            if not (number > 0 and math.isfinite(number)):
                raise UserError(f"--{name.replace('_', '-')} {number:g}: expected a number above 0.")
        ways = [*self.counts, *["samples"] * (self.samples is not None)]
        if len(ways) > 1:
            raise UserError(
                f"{' and '.join(f'--{way}' for way in ways)} both set the amount of data; give one of them."
            )
        for unit, number in self.counts.items():
            known = loaded.spec.counts
            if unit not in known:
                units = ", ".join((*known, "samples"))
                raise UserError(f"--{unit}: {loaded.spec.name} counts its data in {units}{nearest(unit, known)}.")
            samples = int(specs.load_function(known[unit])(loaded.settings, number))
            if samples < 1:
                raise UserError(f"--{unit} {number:g}: not one training sample with this config.")
            return replace(self, samples=samples)
        return self
