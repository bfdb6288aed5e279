"""What more epochs of a run would bring and cost."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli import codes
from cockpit.cli.printing import say, show_json, show_pairs
from cockpit.core.format import number
from cockpit.core.run.advice import AHEAD, LEAST_SCORES, advise
from cockpit.core.run.alerts import typed
from engines.basics.amounts import duration, money
from engines.runs.state import RunReader
from engines.runs.store import find_training


def advice(arguments: Namespace) -> int:
    run = find_training(arguments.run)
    reader = RunReader(run)
    live = reader.status().live
    history, attempt = reader.history, run.newest_attempt()
    found = advise(history, attempt.usd_per_hour if attempt else 0.0)
    if arguments.json:
        gain = found.gain if found else None
        show_json(
            {
                "id": run.info.id, "epochs_ahead": AHEAD, "best_score": found.best if found else None,
                "best_epoch": found.best_epoch if found else None, "gain_low": gain.low if gain else None,
                "gain_middle": gain.middle if gain else None, "gain_high": gain.high if gain else None,
                "seconds": found.seconds if found else None, "usd": found.usd if found else None,
            }
        )  # fmt: skip
    elif found is None:
        say(f"{run.info.id}: too early to say; a stage needs {LEAST_SCORES} scored epochs")
    else:
        cost = duration(found.seconds) + (f", {money(found.usd)}" if found.usd is not None else "")
        standing = reversed(history.standing.values()) if live else ()
        show_pairs(
            {
                "best so far": f"{number(found.best, '.4f')} in epoch {found.best_epoch}",
                "epochs": f"{history.done} of {history.planned}",
                f"{AHEAD} more epochs": f"{found.gain} (80 %), {cost}",
                "alerts": "; ".join(typed(alert, run.info) for alert in standing),
            }
        )
    return codes.DONE
