"""Checking a config without training."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from cockpit.cli.engine import ask_engine
from cockpit.cli.printing import say, show_json, show_pairs
from cockpit.core.format import count, size


def check(arguments: Namespace) -> int:
    """Prints what was found out before the first fault, and every fault."""
    overrides = [part for override in arguments.overrides for part in ("--set", override)]
    found = ask_engine(
        "engines.check", [str(Path(arguments.config)), *overrides], doing="reading data and building the model"
    )
    if arguments.json:
        show_json(found)
    else:
        show_pairs(_facts(found))
        for fault in found["faults"]:
            say(fault)
    code: int = found["exit_code"]
    return code


def _facts(found: dict[str, Any]) -> dict[str, str]:
    facts = {"config": found["config"], "project": found.get("project", ""), "device": found.get("device", "")}
    facts |= {f"data {key}": _words(value) for key, value in found.get("data", {}).items()}
    if parameters := found.get("parameters"):
        facts["parameters"] = f"{count(parameters['total'])}, {count(parameters['trainable'])} trained"
    if steps := found.get("steps"):
        facts["steps"] = f"{count(steps['per_epoch'])} an epoch, {count(steps['total'])} in {steps['epochs']} epochs"
    if memory := found.get("memory"):
        parts = ", ".join(
            f"{name} {size(memory[name])}" for name in ("model", "gradients", "optimizer", "activations", "data")
        )
        facts["memory"] = f"about {size(memory['total'])} of {size(memory['available'])} free ({parts})"
    if disk := found.get("disk"):
        facts["disk"] = (
            f"about {size(disk['needed'])} of {size(disk['free'])} free at {disk['path']} "
            f"({disk['checkpoints']} checkpoints of {size(disk['checkpoint'])})"
        )
    return facts


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
