"""Reviewing thresholds: what is saved, what is best, what changes, and saving it."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cockpit.cli import codes
from cockpit.cli.printing import say, show, show_json, show_table
from cockpit.core.steering.number_keys import typed_number
from cockpit.core.thresholds.review import NOTHING, Row, ThresholdReview, span
from cockpit.core.thresholds.saved import who
from engines.basics.errors import UserError, nearest
from engines.runs.store import find_training
from engines.thresholds.bootstrap import LEAST_GAIN, LEVEL


def thresholds(arguments: Namespace) -> int:
    review = ThresholdReview(find_training(arguments.run))
    start = review.optimum if arguments.optimize else review.saved
    new = {**start, **parse_thresholds(arguments.overrides, review)}
    rows = review.rows(new)
    if not arguments.json:
        _show(review, rows, new, only_diff=arguments.diff or arguments.save)
    elif not arguments.save:
        show_json(_facts(review, rows, new, saved_to=None))
    if review.warning:
        say(review.warning)
    if arguments.save:
        review.save(new, who=who(), now=time.time())
        if arguments.json:
            show_json(_facts(review, rows, new, saved_to=str(review.file.path)))
        say(f"saved as reviewed in {review.file.path}")
    return codes.DONE


def parse_thresholds(texts: list[str], review: ThresholdReview) -> dict[str, float]:
    """`head=0.4` … as thresholds. Raises `UserError` naming every fault, one a line."""
    titles = review.titles
    wanted: dict[str, float] = {}
    faults = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            faults.append(f"--set {text}: expected {titles.head}=threshold, as in {next(iter(review.heads))}=0.4.")
        elif name not in review.heads:
            known = f"{nearest(name, review.heads)}; {titles.heads}: {', '.join(review.heads)}."
            faults.append(f"--set {text}: there is no {titles.head} {name!r}{known}")
        elif name in wanted:
            faults.append(f"--set {text}: {name} is given twice.")
        else:
            low, high = review.heads[name].head.bounds
            wanted[name] = _number(value)
            if not low <= wanted[name] <= high:
                faults.append(f"--set {text}: the threshold of {name} must be a number from {low:g} to {high:g}.")
    if faults:
        raise UserError("\n".join(faults))
    return wanted


def _number(text: str) -> float:
    """NaN, which is in no range, where the text is no number."""
    value = typed_number(text)
    return math.nan if value is None else value


def _show(review: ThresholdReview, rows: list[Row], new: Mapping[str, float], *, only_diff: bool) -> None:
    about = review.about
    show(f"{about.checkpoint}: epoch {about.epoch}, step {about.step}")
    if review.file.content is None:
        show("nothing is exported yet: saved values are those of the run's config")
    head, alarms = review.titles.head, review.titles.alarms
    if not only_diff:
        rates = (
            "F1",
            "precision",
            "recall",
            alarms,
            *(("raw F1", "sent F1", f"sent {alarms}") if review.sends else ()),
        )
        columns = (head, "saved", "new", "best", f"best, {LEVEL:.0%} CI", "nearly best", "gain", *rates, "n+", "n−", "")
        show_table(columns, [_cells(review, row) for row in rows])
        show(_groups(review))
    elif changed := [row for row in rows if row.changed]:
        sent = ("sent F1", "new sent F1") if review.sends else ()
        titles = (head, "saved", "new", "gain", "F1", "new F1", alarms, f"new {alarms}", *sent)
        show_table(titles, [_diff_cells(row)[: len(titles)] for row in changed])
    else:
        show("no threshold changes")
    show()
    before, after = review.totals(review.saved), review.totals(new)
    counts = ("counted",) if review.counted else ()
    totals = [(name, before[name], after[name], review.counted.get(name, "")) for name in before]
    show_table(("overall", "saved", "new", *counts), [row[: 3 + len(counts)] for row in totals])


def _groups(review: ThresholdReview) -> str:
    titles = review.titles
    found = [interval for it in review.heads.values() if (interval := it.interval)]
    lines = dict.fromkeys(why for it in review.heads.values() if (why := review.no_interval(it)))
    if found:
        most = max(found, key=lambda interval: interval.groups)
        lines = {f"Intervals: {most.resamples:,} resamples of {most.groups} {titles.groups}": None, **lines}
    of = f"{LEVEL:.0%} of resamples do, corrected for few {titles.groups}"
    rule = f"nearly best: loses no more than {of}; a smaller gain, or one under {LEAST_GAIN:g},"
    return "\n".join(f"{line}." for line in [*lines, f"{rule} moves no threshold"])


def _cells(review: ThresholdReview, row: Row) -> tuple[Any, ...]:
    it, after, sent = review.heads[row.name], row.after or NOTHING, row.sent or NOTHING
    ranges = (span(it.interval, review.no_interval(it).partition(":")[0]), span(it.regret_set))
    rates: tuple[float | None, ...] = (after.f1, after.precision, after.recall, after.alarm_rate)
    if review.sends:
        rates += ((row.raw or after).f1, sent.f1, sent.alarm_rate)
    return (row.name, row.saved, row.new, it.best, *ranges, row.gain, *rates, row.positives, row.negatives, row.flag)


def _diff_cells(row: Row) -> tuple[Any, ...]:
    before, after, was, sent = (it or NOTHING for it in (row.before, row.after, row.sent_before, row.sent))
    rates = (before.f1, after.f1, before.alarm_rate, after.alarm_rate, was.f1, sent.f1)
    return (row.name, row.saved, row.new, row.gained, *rates)


def _facts(review: ThresholdReview, rows: list[Row], new: Mapping[str, float], saved_to: str | None) -> dict[str, Any]:
    about = review.about
    return {
        "run": review.run.info.id,
        "checkpoint": about.checkpoint,
        "epoch": about.epoch,
        "step": about.step,
        "score": about.score,
        "exported": None if review.file.content is None else str(review.file.path),
        "warning": review.warning,
        "heads": [
            {
                **asdict(row),
                "best": it.best,
                "interval": it.interval and asdict(it.interval),
                "no_interval": review.no_interval(it),
                "nearly_best": it.regret_set and asdict(it.regret_set),
                "least_gain": it.certainty and it.certainty.least_gain,
            }
            for row in rows
            for it in (review.heads[row.name],)
        ],
        "totals": {"saved": review.totals(review.saved), "new": review.totals(new)},
        "counted": dict(review.counted),
        "saved_to": saved_to,
    }
