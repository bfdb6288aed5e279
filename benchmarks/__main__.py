"""`python -m benchmarks NAME [--json]`."""

from __future__ import annotations

import argparse
import importlib
import os

from benchmarks.measure import as_json_lines, as_table
from engines.supervisor.processes import ENVIRONMENT

NAMES = (
    "step_overhead", "batches", "prepare", "thresholds", "thresholds_ui", "policy",
    "open_run", "first_paint", "idle", "follow_latency", "live_keys",
    "ssd", "rollout", "parse", "shards", "sim_step", "coverage", "agent_step",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios, both sides in one run.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", ENVIRONMENT["OMP_WAIT_POLICY"])  # as engines run; read when torch loads
    measurements = importlib.import_module(f"benchmarks.{arguments.name}").measure()
    print(as_json_lines(measurements) if arguments.json else as_table(measurements))


if __name__ == "__main__":
    main()
