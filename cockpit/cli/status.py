"""How things stand: counts and money, or one line for a terminal's status bar."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cockpit.cli import codes
from cockpit.core.ascii import text_in_ascii
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.glance import glance, line
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from engines.basics.errors import UserError
from engines.runs.store import runs_folder


def status(arguments: Namespace) -> int:
    if arguments.width < 1:
        raise UserError(f"--width {arguments.width}: expected a number of cells, 1 or more.")
    if arguments.line:
        text = line(glance(runs_folder(), time.time()), arguments.width)
        print(text_in_ascii(text) if arguments.ascii else text)
        return codes.DONE
    _show(_facts(Fleet(runs_folder()).poll(most=sys.maxsize).changed), as_json=arguments.json)
    return codes.DONE


def _facts(runs: Sequence[RunSummary]) -> dict[str, Any]:
    from cockpit.core.times import first_of_month, midnight, zone
    from engines.runs.spending import usd_since

    now = time.time()
    return {
        "runs": dict(sorted(Counter(run.state for run in runs).items())),
        "live": [run.id for run in sorted(runs, key=lambda run: -run.created) if is_live(run.state)],
        "usd_today": sum(usd_since(run.spans, midnight(now), now) for run in runs),
        "usd_this_month": sum(usd_since(run.spans, first_of_month(now), now) for run in runs),
        "zone": zone(now),
    }


def _show(facts: dict[str, Any], *, as_json: bool) -> None:
    from cockpit.cli.printing import show_json, show_pairs
    from engines.basics.amounts import money

    if as_json:
        show_json(facts)
        return
    counts = " · ".join(f"{number} {state}" for state, number in facts["runs"].items())
    show_pairs(
        {
            "runs": counts or "none",
            "live": ", ".join(facts["live"]),
            "today": f"{money(facts['usd_today'])} since midnight {facts['zone']}",
            "month": money(facts["usd_this_month"]),
        }
    )
