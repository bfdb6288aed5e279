"""`python -m benchmarks NAME [--json]`, or `python -m benchmarks all --out docs/performance.md` for all of them."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

import msgspec

from benchmarks.measure import as_json_lines, as_table, as_text
from benchmarks.page import write_page
from engines.supervisor.processes import ENVIRONMENT

NAMES = (
    "step_overhead", "checkpoint_stall", "batches", "prepare", "thresholds", "thresholds_ui", "policy",
    "open_run", "first_paint", "idle", "follow_latency", "live_keys",
    "ssd", "rollout", "parse", "shards", "sim_step", "coverage", "agent_step", "scaling",
)  # fmt: skip
TABLE = "controls_table"
"""Minutes of training, and a table in the place of ratios."""
ALL = "all"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios, both sides in one run.")
    parser.add_argument("name", choices=(*NAMES, TABLE, ALL))
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--minerl", action="store_true", help=f"{TABLE}: on a player's log, not on the demo")
    parser.add_argument("--out", type=Path, help=f"{ALL}: the page that is written")
    arguments = parser.parse_args()
    if (arguments.out is None) == (arguments.name == ALL):
        parser.error(f"--out is of {ALL}, which needs it")
    if arguments.name == ALL:
        write_page(NAMES, arguments.out)
        return
    if arguments.minerl and arguments.name != TABLE:
        parser.error(f"--minerl is of {TABLE} alone")
    os.environ.setdefault("OMP_WAIT_POLICY", ENVIRONMENT["OMP_WAIT_POLICY"])  # as engines run; read when torch loads
    if arguments.name == TABLE:
        table = importlib.import_module(f"benchmarks.{TABLE}").table(minerl=arguments.minerl)
        print(msgspec.json.encode(table).decode() if arguments.json else as_text(table))
        return
    measurements = importlib.import_module(f"benchmarks.{arguments.name}").measure()
    print(as_json_lines(measurements) if arguments.json else as_table(measurements))


if __name__ == "__main__":
    main()
