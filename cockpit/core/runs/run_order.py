"""Which runs are listed, and in which order. It is written as in the settings: its name, `-name` for descending."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import GLYPHS, is_live
from cockpit.core.text import plain
from cockpit.core.text_filter import KIND, TAG, TextFilter
from engines.runs import spending

Value = float | str | None
_STATES = tuple(GLYPHS)


@dataclass(frozen=True)
class Order:
    """One way to order runs; `descending` is what a person expects of it first."""

    name: str
    about: str
    descending: bool
    value: Callable[[RunSummary, float], Value]
    """Of a run at a moment; None where it has none: such a run comes last, either way."""

    @property
    def written(self) -> str:
        """As it is kept in the settings, in its usual direction."""
        return f"-{self.name}" if self.descending else self.name


def _spent(row: RunSummary, now: float) -> Value:
    if not row.spans:
        return None
    usd = spending.usd_spent(row.spans, now)
    return spending.seconds_spent(row.spans, now) / 1e12 if usd is None else usd  # what has no price below what has


ORDERS = (
    Order("newest", "live runs first, then the newest", True, lambda row, now: row.created),
    Order("name", "by id, A to Z", False, lambda row, now: row.id.casefold()),
    Order("state", "running, then finished, then failed", False, lambda row, now: _STATES.index(row.state)),
    Order("score", "best score first", True, lambda row, now: row.score),
    Order("spent", "most expensive first", True, _spent),
    Order("epoch", "most epochs first", True, lambda row, now: row.done or None),
    Order("age", "youngest first, live or not", False, lambda row, now: now - row.created if row.created else None),
)
DEFAULT = ORDERS[0]


def parse(written: str) -> tuple[Order, bool]:
    """The order and whether it descends; the default for what is none."""
    order = next((order for order in ORDERS if order.name == written.removeprefix("-")), None)
    return (DEFAULT, DEFAULT.descending) if order is None else (order, written.startswith("-"))


def choose(name: str, written: str) -> str:
    """The order `name` in its usual direction; when it is in force already (`written`), the other way round."""
    order, descending = parse(written)
    if order.name == name:
        return name if descending else f"-{name}"
    return next(order for order in ORDERS if order.name == name).written


def ordered(rows: Iterable[RunSummary], written: str, now: float) -> list[RunSummary]:
    """The runs in order; equals stay newest first, and live runs on top while the order is the default one."""
    order, descending = parse(written)
    result = sorted(rows, key=lambda row: (row.created, row.id), reverse=True)
    values = {row.path: order.value(row, now) for row in result}
    having = [row for row in result if values[row.path] is not None]
    having.sort(key=lambda row: values[row.path], reverse=descending)  # type: ignore[arg-type,return-value]
    result = having + [row for row in result if values[row.path] is None]
    if order is DEFAULT and descending:
        result.sort(key=_liveliness)
    return result


def _liveliness(row: RunSummary) -> tuple[int, tuple[str, int]]:
    """What is at work, or was when last heard of, then what waits for it in the order of its queue, then the rest."""
    if row.state == "queued":
        device, place = row.queued or ("", 0)
        return 1, (row.on_host(device), place)
    return (0 if is_live(row.state) or row.state == "stale" else 2), ("", 0)


def matching(rows: Iterable[RunSummary], chosen: TextFilter) -> list[RunSummary]:
    """The runs that a filter lets through, in their order."""
    return [row for row in rows if chosen.lets_through(*_searched(row))] if chosen.active else list(rows)


def _searched(row: RunSummary) -> tuple[str, list[str]]:
    """Everything of a run that a user might look for, each on a line of its own; and its marks, of which only tags are
    shown."""
    parts = (row.host, row.id, row.project, row.label, row.notes, row.title, row.detail, row.state, row.device)
    kind = f"{KIND}{'task' if row.is_task else 'training'}"
    tags = [f"{TAG}{plain(tag)}" for tag in row.tags]
    return "\n".join([*map(plain, parts), *tags]), [kind, *tags]
