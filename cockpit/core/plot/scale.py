"""From values to heights, linear or logarithmic, with a range and ticks that stay put while a curve grows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cockpit.core.series import Floats

Ends = tuple[float | None, float | None]
"""Lowest and highest value; None is an end that the values give."""
LABEL = 7
"""Characters of a tick's label."""
LARGEST = 1e300
"""Values beyond are drawn here: twice of it is still a number."""
MOST_DECADES = 308
"""A tick above has no number."""
SAME = 1e-12
"""Values this close together, relative to their size, are one: the rest is rounding."""
LEAST_TICKS = 2
"""One alone says nothing of how far apart values are."""
FINER = 0.4
"""Of a step of 5, 2 or 1: the next smaller one is the smallest that is at least so large."""
QUARTERS = 4
"""A range ends on a quarter of the distance between two ticks."""


def height(values: Floats, log: bool) -> Floats:
    """`values` on the scale: themselves, or their decimal logarithm (NaN where that is none)."""
    if not log:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        heights: Floats = np.log10(values)
    heights[~np.isfinite(heights)] = np.nan
    return heights


@dataclass(frozen=True)
class Scale:
    """Heights from `low` to `high` and the `ticks` between them, as (height, label) from the lowest up."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    power: int = 0
    """Of ten, that the labels are to be multiplied with; those with a + are so far above the lowest."""


def fit_scale(
    low: float, high: float, ticks: int, log: bool, *, bottom: float | None = None, top: float | None = None
) -> Scale:
    """A scale that holds the heights [low, high] with about `ticks` ticks at round values.

    Its ends lie a little outside; `bottom` and `top` are ends that were set, and stay.
    """
    low, high = (low if bottom is None else bottom), (high if top is None else top)
    if low > high:  # one end was set beyond all values
        low, high = (low, low) if bottom is not None else (high, high)
    low, high = max(low, -LARGEST), min(high, LARGEST)
    if high - low <= max(abs(low), abs(high)) * SAME or high - low < 1 / LARGEST:
        margin = 0.5 if log else abs(low) / 2 or 1.0
        low = low if bottom is not None and top is None else low - margin
        high = high if top is not None and bottom is None else high + margin
    step = nice_step((high - low) / max(ticks, 1), whole=False)
    if log and high - low >= 1:
        step = max(1.0, float(math.ceil(step)))  # whole decades
    quarter = step / QUARTERS
    if bottom is None:
        low = math.floor(low / quarter + 1e-9) * quarter
    if top is None:
        high = math.ceil(high / quarter - 1e-9) * quarter
    heights = multiples(low, high, step)
    while len(heights) < LEAST_TICKS:
        step = nice_step(step * FINER, whole=False)
        heights = multiples(low, high, step)
    if log:
        powers = [(h, 10.0**h) for h in heights if h <= MOST_DECADES]
        return Scale(low, high, tuple((h, label(value, value if step >= 1 else 0.0)) for h, value in powers))
    labels = [label(h, step) for h in heights]
    if max(map(len, labels)) <= LABEL and len(set(labels)) == len(labels):
        return Scale(low, high, tuple(zip(heights, labels, strict=True)))
    power = math.floor(math.log10(max(abs(low), abs(high))) + 1e-9)
    digits = power - math.floor(math.log10(step) + 1e-9)
    if 0 <= digits < LABEL - 2 and abs(power) < MOST_DECADES:
        mantissas = [f"{h / 10.0**power:.{digits}f}" for h in heights]
        if max(map(len, mantissas)) <= LABEL:
            return Scale(low, high, tuple(zip(heights, mantissas, strict=True)), power)
    power = math.floor(math.log10(step) + 1e-9)
    above = [f"+{place * step / 10.0**power:.0f}" for place in range(len(heights))]
    return Scale(low, high, tuple(zip(heights, [label(heights[0], 0.0)[:LABEL], *above[1:]], strict=True)), power)


def nice_step(least: float, whole: bool) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `least` (and at least 1 where `whole`)."""
    if least <= 0 or (whole and least <= 1):
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next((digit * power for digit in (1, 2, 5) if digit * power >= least * (1 - 1e-9)), 10 * power)


def multiples(low: float, high: float, step: float) -> list[float]:
    """All multiples of `step` in [low, high]; zero is exactly zero."""
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


LEAST_FIXED = 0.9999e-4
"""Ticks that far apart have no exponents: `0.0005` between 0 and `0.0010`."""


def label(value: float, step: float) -> str:
    """A tick's value, as precise as its `step` asks: `0.35`, `1.25k`, `3.4e-5`; step 0 means three digits."""
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-0", "0")
    if (size < 1e-3 and step < LEAST_FIXED) or size >= 1e15:
        return _exponent(value, step)
    unit, name = next(((unit, name) for unit, name in UNITS if size >= unit * 0.9995), (1.0, ""))
    if not step:
        return f"{value / unit:.3g}{name}"
    places = min(max(0, -math.floor(math.log10(step / unit) + 1e-9)), 5)
    return f"{value / unit:.{places}f}{name}"


def _exponent(value: float, step: float) -> str:
    """`3.4e-5`: no padding, no digit more than the step asks."""
    digits = 1
    if step:
        digits = min(max(0, math.floor(math.log10(abs(value)) + 1e-9) - math.floor(math.log10(step) + 1e-9)), 3)
    mantissa, _, power = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(power)}"
